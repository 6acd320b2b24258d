//! The setters that everything in a list of a server has: tools, prompts, resources and templates.

/// Implements them for these types.
macro_rules! described {
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
        }
    )*};
}

pub(super) use described;
