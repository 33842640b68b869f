//! What a browser may do with a page: show it, run our one script, post its forms back to us, and nothing else.

use axum::http::{HeaderValue, header};
use axum::response::Response;

/// Nothing from elsewhere, nothing inline, no frame, no plug-in, and no text that a script could take for code.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
     form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

/// Puts the policy on a page. Pages hold what one account may see: nobody keeps a copy.
pub(super) async fn guard(mut response: Response) -> Response {
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
