use serde::{Deserialize, Serialize};

/// The body of every error answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ErrorBody {
    /// The HTTP status.
    pub code: u16,
    /// A word for programs, one of [`error_reason`].
    pub reason: String,
    /// A sentence for people: what was wrong and what to do.
    pub message: String,
    /// Names this request in the server's log.
    #[serde(default)]
    pub request_id: String,
}

/// The words in [`ErrorBody::reason`]. The first eight are GPUStack 0.7's.
pub mod error_reason {
    /// 400: the request makes no sense.
    pub const BAD_REQUEST: &str = "BadRequest";
    /// 401: no or wrong credentials.
    pub const UNAUTHORIZED: &str = "Unauthorized";
    /// 403: not allowed to this caller.
    pub const FORBIDDEN: &str = "Forbidden";
    /// 404: no such thing.
    pub const NOT_FOUND: &str = "NotFound";
    /// 409: the name is taken.
    pub const ALREADY_EXISTS: &str = "AlreadyExists";
    /// 422: a field is missing or has a bad value.
    pub const INVALID: &str = "Invalid";
    /// 500: the server's fault; its log says which.
    pub const INTERNAL: &str = "InternalServerError";
    /// 503: try again later.
    pub const UNAVAILABLE: &str = "ServiceUnavailable";
    /// 401: no worker has this identity and this key, as after it was deleted; join again with a token.
    pub const WORKER_UNKNOWN: &str = "WorkerUnknown";
    /// 409: another host that is alive uses this identity.
    pub const IDENTITY_DUPLICATED: &str = "IdentityDuplicated";
    /// 409: the name belongs to a worker that is gone; an administrator can let the caller take its place.
    pub const REPLACEMENT_NEEDED: &str = "ReplacementNeeded";
    /// 403: the password must be changed first.
    pub const PASSWORD_CHANGE_REQUIRED: &str = "PasswordChangeRequired";
    /// 426: the worker speaks a protocol that is too old or too new.
    pub const PROTOCOL_UNSUPPORTED: &str = "ProtocolUnsupported";
    /// 429: too many attempts.
    pub const TOO_MANY_REQUESTS: &str = "TooManyRequests";
}
