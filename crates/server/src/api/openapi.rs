//! The OpenAPI document: its head, and the refusals that most calls share.

use std::collections::BTreeMap;

use utoipa::openapi::path::{ParameterBuilder, ParameterIn};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa::openapi::{Content, ContentBuilder, Ref, RefOr, Required, Response, ResponseBuilder};
use utoipa::{IntoResponses, Modify, OpenApi, ToSchema};

use super::error::ErrorBody;
use crate::auth::ACCOUNT_HEADER;

/// The head of the document.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "Tidegate",
        description = "Webhook delivery that controls when, how fast, how many at a time, and for how long. \
                       Every call acts in the account of its key; an operator key names another account by the header \
                       `Tidegate-Account`."
    ),
    components(schemas(ErrorBody)),
    modifiers(&BearerKey),
    security(("key" = [])),
    tags(
        (name = "publish", description = "Events come in."),
        (name = "destinations", description = "Where events go, and by which policies."),
        (name = "deliveries", description = "What became of them."),
        (name = "administration", description = "Accounts, keys, settings."),
        (name = "observing", description = "Health, metrics, streams.")
    )
)]
pub(crate) struct Document;

struct BearerKey;

impl Modify for BearerKey {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let scheme = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
        document.components.get_or_insert_default().add_security_scheme("key", scheme);
    }
}

/// Gives each operation a name of its own, from method and path: handlers of different resources are named alike.
pub(crate) fn name_operations(document: &mut utoipa::openapi::OpenApi) {
    for (path, item) in &mut document.paths.paths {
        let path = path.trim_start_matches("/v1").replace(['{', '}'], "").replace(['/', '-', '.'], "_");
        let operations = [
            ("get", &mut item.get),
            ("put", &mut item.put),
            ("post", &mut item.post),
            ("delete", &mut item.delete),
            ("patch", &mut item.patch),
        ];
        for (method, operation) in operations {
            if let Some(operation) = operation {
                operation.operation_id = Some(format!("{method}{path}"));
            }
        }
    }
}

/// Gives each call that a key is needed for the header by which an operator names an account.
pub(crate) fn name_accounts(document: &mut utoipa::openapi::OpenApi) {
    let description =
        "For operator keys: act in this account, by id or external id, and not in the key's own.";
    let header = ParameterBuilder::new()
        .name(ACCOUNT_HEADER)
        .parameter_in(ParameterIn::Header)
        .required(Required::False)
        .description(Some(description))
        .schema(Some(ObjectBuilder::new().schema_type(Type::String)))
        .build();
    let calls = document.paths.paths.iter_mut().filter(|(path, _)| path.starts_with("/v1/"));
    for (_, item) in calls {
        let operations = [&mut item.get, &mut item.put, &mut item.post, &mut item.delete, &mut item.patch];
        for operation in operations.into_iter().flatten() {
            operation.parameters.get_or_insert_default().push(RefOr::T(header.clone()));
        }
    }
}

/// What any call with a key may be refused with: for `responses(…, Refusals)`.
pub(crate) struct Refusals;

/// What a call that changes something may be refused with, too: for `responses(…, WriteRefusals)`.
pub(crate) struct WriteRefusals;

const REFUSALS: [(&str, &str); 6] = [
    ("401", "No valid API key."),
    ("403", "The key's role does not allow this."),
    ("404", "There is no such resource in this account."),
    (
        "422",
        "A field or parameter is missing, unknown, of the wrong type or out of range: `field` says which.",
    ),
    ("429", "Too many calls or failed sign-ins, or the account's quota is used up: `Retry-After` says when."),
    ("503", "The store is unavailable: nothing was done."),
];
const WRITE_REFUSALS: [(&str, &str); 6] = [
    ("400", "The body is not JSON."),
    ("408", "The body did not come in within 30 s."),
    ("409", "It contradicts what is there: `code` says how."),
    ("412", "`If-Match` names another version than the one that is there."),
    ("413", "The body is too large."),
    ("415", "The body is compressed, or no JSON by its `Content-Type`."),
];

impl IntoResponses for Refusals {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        table(&REFUSALS).collect()
    }
}

impl IntoResponses for WriteRefusals {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        table(&REFUSALS).chain(table(&WRITE_REFUSALS)).collect()
    }
}

fn table(rows: &'static [(&str, &str)]) -> impl Iterator<Item = (String, RefOr<Response>)> {
    rows.iter().map(|(status, description)| {
        let response =
            ResponseBuilder::new().description(*description).content("application/json", content()).build();
        ((*status).to_owned(), RefOr::T(response))
    })
}

fn content() -> Content {
    ContentBuilder::new().schema(Some(Ref::from_schema_name(ErrorBody::name()))).build()
}
