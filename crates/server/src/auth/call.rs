//! What a call must bring before anything else of it is read: a key with the role, and no parameter that the call does not
//! know.
//!
//! Handlers name both in their signature, `Call { caller, query, .. }: Call<Viewer, ListQuery>`, before path and body: so
//! the role is always judged first, and no handler can forget to.

use std::marker::PhantomData;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::{Caller, Role};
use crate::api::App;
use crate::api::error::ApiError;
use crate::api::extract::Query;

/// The least role that a call needs.
pub(crate) trait Needs {
    /// This one.
    const ROLE: Role;
}

macro_rules! needs {
    ($($name:ident),*) => {
        $(
            #[doc = concat!("At least [`Role::", stringify!($name), "`].")]
            pub(crate) struct $name;
            impl Needs for $name {
                const ROLE: Role = Role::$name;
            }
        )*
    };
}

needs!(Viewer, Publisher, Editor, Owner, Operator);

/// A call by somebody who may make it.
pub(crate) struct Call<R, Q = NoQuery> {
    /// Who.
    pub(crate) caller: Caller,
    /// What stands behind the `?`.
    pub(crate) query: Q,
    role: PhantomData<R>,
}

/// The parameters of a call that has none: any is refused.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NoQuery {}

impl<R: Needs, Q: DeserializeOwned> FromRequestParts<App> for Call<R, Q> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        let caller = Caller::of(parts, app)?;
        caller.require(R::ROLE)?;
        let Query(query) = Query::from_request_parts(parts, app).await?;
        Ok(Self { caller, query, role: PhantomData })
    }
}

/// For calls that judge the role themselves.
impl FromRequestParts<App> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        let caller = Self::of(parts, app)?;
        let Query(NoQuery {}) = Query::from_request_parts(parts, app).await?;
        Ok(caller)
    }
}
