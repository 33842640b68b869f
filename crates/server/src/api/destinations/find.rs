//! A destination by what a call names it.

use std::sync::Arc;

use crate::api::App;
use crate::api::error::ApiError;
use crate::auth::Caller;
use crate::catalogue::DestinationEntry;

/// The destination of the caller's account with this id or external id. Another account's is as unknown as none.
pub(crate) fn find(app: &App, caller: &Caller, name: &str) -> Result<Arc<DestinationEntry>, ApiError> {
    app.catalogue.find_destination(caller.account, name).ok_or_else(ApiError::not_found)
}
