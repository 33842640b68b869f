//! What a browser may do with a page: show it, run our one script, post its forms back to us, and nothing else.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;

use super::layout;

/// Nothing from elsewhere, nothing inline, no frame, no plug-in, and no text that a script could take for code.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
     form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

/// Puts the policy on a page. Pages hold what one account may see: nobody keeps a copy.
pub(super) async fn guard(response: Response) -> Response {
    let mut response = as_page(response);
    let fixed = [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "same-origin"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    for (name, value) in fixed {
        response.headers_mut().entry(name).or_insert(HeaderValue::from_static(value));
    }
    response
}

/// An address that cannot be read, or is no place to do this, never came to a page: people get one all the same.
fn as_page(response: Response) -> Response {
    let is_page = response
        .headers()
        .get(header::CONTENT_TYPE)
        .is_some_and(|kind| kind.as_bytes().starts_with(b"text/html"));
    match response.status() {
        _ if is_page => response,
        status @ StatusCode::BAD_REQUEST => layout::plain(
            status,
            "Not understood",
            "There is something in this address, or in what was sent to it, that this page does not take.",
        ),
        status @ StatusCode::METHOD_NOT_ALLOWED => {
            let allowed = response.headers().get(header::ALLOW).cloned();
            let mut page = layout::plain(
                status,
                "Not here",
                "This page is there to be looked at; it takes nothing of this kind.",
            );
            page.headers_mut().extend(allowed.map(|allowed| (header::ALLOW, allowed)));
            page
        }
        _ => response,
    }
}
