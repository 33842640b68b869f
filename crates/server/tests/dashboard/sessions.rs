//! Sessions: where they hold, and where they end.

use bytes::Bytes;
use http::Method;

use super::kit::{Client, NO_POSTGRES, Postgres, SECRET_KEY, Server, skip};

const FORM: &str = "application/x-www-form-urlencoded";

async fn post(client: &Client, path: &str, body: String) -> (u16, Option<String>) {
    let answer = client.try_send(Method::POST, path, Some(FORM), Bytes::from(body)).await.expect("an answer");
    (answer.status, answer.header("set-cookie").map(str::to_owned))
}

/// The cookie of somebody who signs in there.
async fn cookie(server: &Server) -> String {
    let (status, cookie) = post(&server.with_key(""), "/sign-in", format!("key={}", server.key)).await;
    assert_eq!(status, 303);
    let cookie = cookie.expect("a cookie");
    cookie.split(';').next().expect("a pair").to_owned()
}

/// What whoever has this cookie gets of a page: 200, or 303 to the sign-in.
async fn sees(server: &Server, cookie: &str) -> u16 {
    server.with_key("").with_header("cookie", cookie).get("/log").await.status
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_signs_out_leaves_no_cookie_behind_that_opens_anything() {
    let mut server = Server::start(&[]).await;
    let (left, kept) = (cookie(&server).await, cookie(&server).await);
    assert_eq!((sees(&server, &left).await, sees(&server, &kept).await), (200, 200));
    let elsewhere =
        server.with_key("").with_header("cookie", &left).with_header("origin", "https://evil.example");
    assert_eq!(post(&elsewhere, "/sign-out", String::new()).await.0, 403, "no other page signs anybody out");
    assert_eq!(sees(&server, &left).await, 200);

    let session = server.with_key("").with_header("cookie", &left);
    let (status, taken) = post(&session, "/sign-out", String::new()).await;
    assert!(status == 303 && taken.is_some_and(|cookie| cookie.starts_with("tidegate_session=; ")));
    assert_eq!(sees(&server, &left).await, 303, "a copy of the cookie is worth nothing");
    let live = session.get("/live").await;
    assert_eq!(live.status, 303);
    assert_eq!(sees(&server, &kept).await, 200, "another session with the same key goes on");
    assert!(server.stop().await);
    server.restart().await;
    assert_eq!(sees(&server, &kept).await, 200, "also after a restart");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_cannot_be_read_is_answered_with_a_page() {
    let server = Server::start(&[]).await;
    let session = server.with_key("").with_header("cookie", &cookie(&server).await);
    for (method, path, status, words) in [
        (Method::GET, "/log?cursor=a&cursor=b", 400, "Not understood"),
        (Method::PUT, "/log", 405, "Not here"),
        (Method::DELETE, "/destinations", 405, "Not here"),
    ] {
        let answer = session.try_send(method, path, None, Bytes::new()).await.expect("an answer");
        assert_eq!(answer.status, status, "{path}");
        assert!(answer.header("content-type").is_some_and(|kind| kind.starts_with("text/html")), "{path}");
        assert!(answer.header("content-security-policy").is_some(), "{path}");
        assert_eq!(answer.header("allow").is_some(), status == 405, "{path}");
        let text = String::from_utf8_lossy(&answer.bytes);
        assert!(text.contains(words), "{path}: {text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_of_one_node_is_good_on_another() {
    let Some(programs) = Postgres::programs() else {
        skip(NO_POSTGRES);
        return;
    };
    let database = Postgres::start(&programs);
    database.sql("postgres", "create database tidegate");
    let url = format!("postgres://postgres@127.0.0.1:{}/tidegate", database.port);
    let node = async |name: &str| {
        let own = ["--database-url", &url, "--node-name", name];
        Server::start_in(&[("TIDEGATE_SECRET_KEY", SECRET_KEY)], &own).await
    };
    let (one, other) = (node("one").await, node("other").await);
    let session = cookie(&one).await;
    assert_eq!((sees(&one, &session).await, sees(&other, &session).await), (200, 200));
}
