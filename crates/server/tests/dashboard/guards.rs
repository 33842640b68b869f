//! What the dashboard keeps out: markup in texts, posts from elsewhere, and whoever may only look.

use serde_json::json;

use super::browser::Browser;
use super::kit::{self, Receiver, Reply, Server, secs, until};
use super::{destination, publish};

/// What an attacker would have a page take for HTML.
const EVIL: &str =
    "\"'><script>window.evil=1</script><img src=x onerror=window.evil=1><svg onload=window.evil=1>";

#[tokio::test(flavor = "multi_thread")]
async fn text_full_of_markup_does_nothing_anywhere() {
    let server = Server::start(&[]).await;
    let receiver =
        Receiver::start(|_| Reply::status(400).header("x-evil", "<script>window.evil=1</script>").body(EVIL))
            .await;
    let shop = destination(&server, json!({"name": EVIL, "url": format!("{}/?a=<script>", receiver.url), "retry_policy": {"max_attempts": 1}})).await;
    let body = json!({"event_type": "a.b", "payload": {EVIL: [EVIL, "</pre></script>"]}, "external_event_id": EVIL, "ordering_key": EVIL});
    let event = publish(&server, body).await;
    let described = json!({"description": EVIL, "consumer_guidance": EVIL});
    server.put("/v1/event-types/a.b", described).await.expect(201);
    server.patch("/v1/settings", json!({"public_event_types": true})).await.expect(200);
    server.post("/v1/api-keys", json!({"name": EVIL, "role": "viewer"})).await.expect(201);
    until(secs(60), "it is given up", async || {
        server.get("/v1/deliveries?status=dead_letter&total=true").await.expect(200)["total"] == 1
    })
    .await;
    let account =
        server.get("/v1/accounts").await.expect(200)["items"][0]["id"].as_str().expect("an id").to_owned();
    let browser = Browser::open(&server.base_url).await;
    browser.sign_in(&server.key).await;
    let search = format!(
        "/destinations?search={}&status=%3Cscript%3E",
        "%22%3E%3Cscript%3Ewindow.evil%3D1%3C%2Fscript%3E"
    );
    for path in [
        "/".to_owned(),
        "/destinations".to_owned(),
        search,
        format!("/destinations/{shop}"),
        format!("/destinations/{shop}/edit"),
        "/log".to_owned(),
        "/log/events".to_owned(),
        "/log?external_id=%3Cscript%3Ewindow.evil%3D1%3C%2Fscript%3E".to_owned(),
        format!("/events/{event}"),
        "/dead-letters".to_owned(),
        "/event-types".to_owned(),
        "/event-types/edit?event_type=a.b".to_owned(),
        "/settings".to_owned(),
        format!("/catalogue/{account}"),
        "/sign-in?next=%22%3E%3Cscript%3Ewindow.evil%3D1%3C%2Fscript%3E".to_owned(),
    ] {
        browser.go(&path).await;
        browser.reads("h1", "").await;
        let found = browser
            .run("return [window.evil === undefined, document.querySelectorAll('script').length, document.querySelectorAll('main img, main script, [onerror], [onload]').length]")
            .await;
        assert_eq!(found, json!([true, 1, 0]), "{path}");
        let complaints = browser.complaints().await;
        let of_status = |line: &String| line.contains("the server responded with a status of 4");
        assert!(complaints.iter().all(of_status), "{path}: {complaints:?}");
    }
    browser.go(&format!("/events/{event}")).await;
    browser.press_on("details.attempt summary").await;
    browser.reads("details.attempt", "<script>window.evil=1</script>").await;
    browser.reads("pre.payload", "<script>").await;
    // What comes with a live update is text as well.
    publish(&server, json!({"event_type": "a.b", "payload": {"again": EVIL}})).await;
    browser.go("/log").await;
    browser.reads("[data-live=log]", "a.b").await;
    assert_eq!(browser.run("return window.evil === undefined").await, true);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_viewer_sees_no_forms_and_its_posts_are_refused() {
    let server = Server::start(&[]).await;
    let receiver = Receiver::start(|_| Reply::status(200)).await;
    let shop = destination(&server, json!({"url": receiver.url})).await;
    let event = publish(&server, json!({"event_type": "a.b", "payload": {}})).await;
    let made = server.post("/v1/api-keys", json!({"name": "look", "role": "viewer"})).await.expect(201);
    let (key, id) =
        (made["api_key"].as_str().expect("a key").to_owned(), made["id"].as_str().expect("an id").to_owned());
    let browser = Browser::open(&server.base_url).await;
    browser.sign_in(&key).await;
    for path in [
        "/",
        "/destinations",
        "/log",
        "/dead-letters",
        "/event-types",
        "/settings",
        &format!("/destinations/{shop}"),
        &format!("/events/{event}"),
        &format!("/destinations/{shop}/edit"),
        "/destinations/new",
    ] {
        browser.go(path).await;
        let posts = browser.run("return [...document.querySelectorAll('form[method=post]')].map(form => form.getAttribute('action')).join()").await;
        assert_eq!(posts, "/sign-out", "{path}");
    }
    // A form that the page does not have is refused by the server.
    let post = |path: &str| {
        format!(
            "const done = arguments[arguments.length - 1]; fetch('{path}', {{method: 'POST', redirect: 'manual', headers: {{'content-type': 'application/x-www-form-urlencoded'}}, \
             body: 'what=pause&event_type=a.b&max_concurrency=7&csrf=' + encodeURIComponent(document.querySelector('[name=csrf]').value)}}).then(answer => done(answer.status))"
        )
    };
    for path in [
        format!("/destinations/{shop}/do"),
        format!("/destinations/{shop}/edit"),
        format!("/events/{event}/do"),
        "/destinations/new".to_owned(),
        "/event-types".to_owned(),
        "/dead-letters".to_owned(),
        "/settings".to_owned(),
        "/settings/keys".to_owned(),
    ] {
        assert_eq!(browser.run_later(&post(&path)).await, 403, "{path}");
    }
    assert_eq!(server.get(&format!("/v1/destinations/{shop}")).await.expect(200)["status"], "active");

    // The session ends with its key.
    server.delete(&format!("/v1/api-keys/{id}")).await.expect(204);
    browser.go("/log").await;
    assert_eq!(browser.path().await, "/sign-in?next=%2Flog");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_post_without_the_sessions_own_word_is_refused() {
    let server = Server::start(&[]).await;
    let receiver = Receiver::start(|_| Reply::status(200)).await;
    let shop = destination(&server, json!({"url": receiver.url})).await;
    let form = "application/x-www-form-urlencoded";
    let bare = server.with_key("");
    let enter = async |client: &kit::Client, body: &str| {
        client
            .try_send(http::Method::POST, "/sign-in", Some(form), bytes::Bytes::from(body.to_owned()))
            .await
            .expect("an answer")
    };
    let entered = enter(&bare, &format!("key={}", server.key)).await;
    let cookie = entered.header("set-cookie").expect("a cookie").to_owned();
    assert!(
        cookie.contains("; HttpOnly; SameSite=Lax")
            && !cookie.contains("Secure")
            && !cookie.contains(&server.key),
        "{cookie}"
    );
    let over_tls =
        enter(&bare.with_header("x-forwarded-proto", "https"), &format!("key={}", server.key)).await;
    assert!(over_tls.header("set-cookie").is_some_and(|cookie| cookie.ends_with("; Secure")));
    let elsewhere =
        enter(&bare.with_header("origin", "https://evil.example"), &format!("key={}", server.key)).await;
    assert_eq!((elsewhere.status, elsewhere.header("set-cookie")), (403, None));

    let session = bare.with_header("cookie", cookie.split(';').next().expect("a pair"));
    let page = session.get(&format!("/destinations/{shop}")).await;
    assert_eq!(page.status, 200);
    for (header, part) in [
        ("content-security-policy", "default-src 'none'"),
        ("cache-control", "no-store"),
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
    ] {
        assert!(
            page.header(header).is_some_and(|value| value.contains(part)),
            "{header}: {:?}",
            page.header(header)
        );
    }
    let text = page.text();
    let csrf = text
        .split("name=\"csrf\" value=\"")
        .nth(1)
        .and_then(|rest| rest.split('"').next())
        .expect("a word")
        .to_owned();
    let post = async |client: &kit::Client, body: String| {
        let path = format!("/destinations/{shop}/do");
        client
            .try_send(http::Method::POST, &path, Some(form), bytes::Bytes::from(body))
            .await
            .expect("an answer")
            .status
    };
    assert_eq!(post(&session, "what=pause".to_owned()).await, 403);
    assert_eq!(post(&session, "what=pause&csrf=x".to_owned()).await, 403);
    assert_eq!(
        post(&session.with_header("sec-fetch-site", "cross-site"), format!("what=pause&csrf={csrf}")).await,
        403
    );
    assert_eq!(
        post(&bare, format!("what=pause&csrf={csrf}")).await,
        303,
        "without a session: to the sign-in"
    );
    assert_eq!(server.get(&format!("/v1/destinations/{shop}")).await.expect(200)["status"], "active");
    assert_eq!(post(&session, format!("what=pause&csrf={csrf}")).await, 303);
    let api = format!("/v1/destinations/{shop}");
    assert_eq!(server.get(&api).await.expect(200)["status"], "paused");
    // What is switched off is not resumed but switched on: the page offers what helps.
    server.patch(&api, serde_json::json!({"active": false})).await.expect(200);
    let page = session.get(&format!("/destinations/{shop}")).await;
    assert!(page.text().contains("Switch on"), "{}", page.text());
    assert_eq!(post(&session, format!("what=resume&csrf={csrf}")).await, 303);
    assert_eq!(server.get(&api).await.expect(200)["status"], "disabled");
    assert_eq!(post(&session, format!("what=enable&csrf={csrf}")).await, 303);
    assert_eq!(server.get(&api).await.expect(200)["status"], "active");
}
