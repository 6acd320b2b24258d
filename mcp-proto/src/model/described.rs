//! What everything in a list of a server has: tools, prompts, resources and templates.

/// Implements it for these types. With `located`: what a resource and a template have besides.
macro_rules! described {
    (located $($kind:ty),*) => {$(
        impl $kind {
            /// Sets its name, for programs.
            #[must_use]
            pub fn name(mut self, name: impl Into<alloc::string::String>) -> Self {
                self.name = name.into();
                self
            }

            /// Sets its media type. Text and bytes that a handler returns have it too.
            #[must_use]
            pub fn mime(mut self, name: impl Into<alloc::string::String>) -> Self {
                self.mime_type = Some(name.into());
                self
            }

            /// Sets for whom it is, and how important it is.
            #[must_use]
            pub fn annotations(mut self, annotations: crate::model::content::Annotations) -> Self {
                self.annotations = annotations;
                self
            }
        }

        impl From<&str> for $kind {
            /// As `new`.
            fn from(text: &str) -> Self {
                Self::new(text)
            }
        }

        impl From<alloc::string::String> for $kind {
            /// As `new`.
            fn from(text: alloc::string::String) -> Self {
                Self::new(text)
            }
        }
    )*};
    ($($kind:ty),*) => {$(
        impl $kind {
            /// Sets its name, for people. Not sent before 2025-06-18, which introduced it.
            #[must_use]
            pub fn title(mut self, title: impl Into<alloc::string::String>) -> Self {
                self.title = Some(title.into());
                self
            }

            /// Sets its description for a language model.
            #[must_use]
            pub fn describe(mut self, description: impl Into<alloc::string::String>) -> Self {
                self.description = Some(description.into());
                self
            }

            /// Adds an icon. Not sent before 2025-11-25, which introduced them.
            #[must_use]
            pub fn icon(mut self, icon: impl Into<crate::model::icon::Icon>) -> Self {
                self.icons.push(icon.into());
                self
            }

            /// Sets a member of its `_meta`. Not sent before 2025-06-18, which introduced it.
            #[must_use]
            pub fn meta(mut self, key: &str, value: impl crate::rpc::JsonValue) -> Self {
                self.meta.set(key, value);
                self
            }

            /// Sets the scopes of OAuth that a client needs to use it, for a server that [verifies
            /// tokens](crate::ServerConfig::resource). Never sent. The [`Router`](crate::Router)
            /// refuses a client whose token lacks one of them, and runs no handler. A client
            /// without a token, as over standard input and output, needs none.
            ///
            /// # Panics
            /// If one is no scope token (RFC 6749 section 3.3), or they are more than 64.
            #[must_use]
            pub fn scopes<'a>(mut self, scopes: impl IntoIterator<Item = &'a str>) -> Self {
                self.scopes = crate::auth::Scopes::demanded(scopes);
                self
            }

            /// Encodes its name, title and description, after these members.
            fn with_texts(
                &self,
                object: crate::rpc::Object,
                version: crate::version::ProtocolVersion,
            ) -> crate::rpc::Object {
                let title = self.title.as_deref().filter(|_| version.rules().titles);
                let object = object.with("name", self.name.as_str()).with_opt("title", title);
                object.with_opt("description", self.description.as_deref())
            }
        }
    )*};
}

pub(super) use described;
