//! The style sheet, the script and the icon: in the binary, and kept by browsers for as long as they stay the same.

use std::sync::LazyLock;

use axum::Router;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use axum::routing::get;
use sha2::{Digest, Sha256};

use super::Dashboard;

/// A file of the binary, under a name that changes with what is in it.
pub(super) struct Asset {
    /// Where it is.
    pub(super) path: String,
    kind: &'static str,
    text: &'static str,
}

impl Asset {
    fn new(name: &str, ending: &str, kind: &'static str, text: &'static str) -> Self {
        let hash: String = Sha256::digest(text).iter().take(6).map(|byte| format!("{byte:02x}")).collect();
        Self { path: format!("/assets/{name}.{hash}.{ending}"), kind, text }
    }
}

/// How pages look.
pub(super) static STYLE: LazyLock<Asset> =
    LazyLock::new(|| Asset::new("style", "css", "text/css; charset=utf-8", include_str!("static/style.css")));
/// What pages do beyond what the server does: live updates, countdowns, copying.
pub(super) static SCRIPT: LazyLock<Asset> = LazyLock::new(|| {
    Asset::new("script", "js", "text/javascript; charset=utf-8", include_str!("static/script.js"))
});
/// What stands in the browser's tab.
pub(super) static ICON: LazyLock<Asset> =
    LazyLock::new(|| Asset::new("icon", "svg", "image/svg+xml", include_str!("static/icon.svg")));

/// The files.
pub(super) fn routes() -> Router<Dashboard> {
    [&STYLE, &SCRIPT, &ICON].into_iter().fold(Router::new(), |router, asset| {
        let serve = move || {
            let headers = [
                (CONTENT_TYPE, asset.kind),
                (CACHE_CONTROL, "public, max-age=31536000, immutable"),
                (X_CONTENT_TYPE_OPTIONS, "nosniff"),
            ];
            std::future::ready((headers, asset.text))
        };
        router.route(&asset.path, get(serve))
    })
}
