//! The forms of lists in a recording.

use crate::{Catalogue, ListKind, Listing, Lists};
use alloc::string::String;
use alloc::vec::Vec;
use mcp_proto::record::value::Value;
use mcp_proto::rpc::{DecodeError, RawJson};

impl Value for Lists {
    type Form = Vec<ListKind>;

    fn form(&self) -> Self::Form {
        ListKind::ALL.into_iter().filter(|list| self.has(*list)).collect()
    }

    fn read(form: Self::Form) -> Result<Self, DecodeError> {
        Ok(form.into_iter().fold(Self::NONE, Self::with))
    }
}

impl Value for Catalogue {
    type Form = String;

    fn form(&self) -> String {
        self.write().form()
    }

    fn read(text: String) -> Result<Self, DecodeError> {
        Self::read(&<RawJson as Value>::read(text)?)
    }
}

/// The form is the catalogue of only this list.
impl Value for Listing {
    type Form = String;

    fn form(&self) -> String {
        let mut catalogue = Catalogue::default();
        catalogue.set(self.clone());
        catalogue.form()
    }

    fn read(text: String) -> Result<Self, DecodeError> {
        let catalogue = <Catalogue as Value>::read(text)?;
        let mut lists = ListKind::ALL.into_iter().filter_map(|list| catalogue.get(list));
        match (lists.next(), lists.next()) {
            (Some(list), None) => Ok(list),
            _ => Err(DecodeError::new("not one list")),
        }
    }
}
