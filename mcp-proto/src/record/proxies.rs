//! The form of the forward proxies of a client.

use super::value::Value;
use crate::client::{BadProxy, NoProxy, Proxy, ProxySetting};
use crate::rpc::DecodeError;
use alloc::string::String;
use serde::{Deserialize, Serialize};

/// The parts of a proxy, or the name of a variable.
#[derive(Serialize, Deserialize)]
pub(crate) enum ProxyForm {
    None,
    Proxy(String, u16, Option<String>),
    Bad(String, BadProxy),
}

impl Value for ProxySetting {
    type Form = ProxyForm;

    fn form(&self) -> ProxyForm {
        match self {
            Self::None => ProxyForm::None,
            Self::Proxy(proxy) => {
                ProxyForm::Proxy(proxy.host().into(), proxy.port(), proxy.authorization().map(Into::into))
            }
            Self::Bad(name, why) => ProxyForm::Bad(name.clone(), *why),
        }
    }

    fn read(form: ProxyForm) -> Result<Self, DecodeError> {
        Ok(match form {
            ProxyForm::None => Self::None,
            ProxyForm::Proxy(host, port, authorization) => Self::Proxy(
                Proxy::from_parts(host, port, authorization)
                    .ok_or_else(|| DecodeError::new("HTTP is not compiled in"))?,
            ),
            ProxyForm::Bad(name, why) => Self::Bad(name, why),
        })
    }
}

/// The list as it was given.
impl Value for NoProxy {
    type Form = String;

    fn form(&self) -> String {
        self.as_str().into()
    }

    fn read(text: String) -> Result<Self, DecodeError> {
        Ok(Self::parse(&text))
    }
}
