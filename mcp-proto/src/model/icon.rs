//! Icons, for people (2025-11-25 icons).

use crate::rpc::{DecodeError, JsonKind, Object, RawJson};
use crate::version::Rules;
use alloc::string::String;
use alloc::vec::Vec;

/// An image that represents a tool, a resource, a prompt or a program. Sent from 2025-11-25 on.
///
/// An icon of a peer is untrusted: it may be a program in the form of a picture, or reveal who
/// looks at it. Fetch it without credentials, follow no redirect to another scheme or origin, check
/// the type of its bytes, and limit their number.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Icon {
    src: String,
    /// Its media type, if that of the server is missing or too general.
    pub mime_type: Option<String>,
    /// The sizes at which it can be used: `48x48`, or `any` for a format that scales.
    pub sizes: Vec<String>,
    /// The theme that it was designed for. `None`: any.
    pub theme: Option<Theme>,
    /// Members that this type does not name, unchanged.
    #[cfg_attr(feature = "record", serde(with = "crate::record::value"))]
    pub other: Object,
}

/// The theme of a user interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
pub enum Theme {
    /// Dark text on a light background.
    Light,
    /// Light text on a dark background.
    Dark,
}

impl Theme {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Light => "light",
            Self::Dark => "dark",
        }
    }
}

impl Icon {
    /// Creates an icon at this `https:` URI, or of the data in this `data:` URI.
    ///
    /// # Panics
    /// If it is another URI, which clients must reject.
    pub fn new(src: impl Into<String>) -> Self {
        let src = src.into();
        assert!(is_acceptable(&src), "the URI of an icon is an https or a data URI");
        Self { src, mime_type: None, sizes: Vec::new(), theme: None, other: Object::new() }
    }

    /// Sets its media type.
    #[must_use]
    pub fn mime(mut self, name: impl Into<String>) -> Self {
        self.mime_type = Some(name.into());
        self
    }

    /// Adds a size at which it can be used: `48x48`, or `any` for a format that scales.
    #[must_use]
    pub fn size(mut self, size: impl Into<String>) -> Self {
        self.sizes.push(size.into());
        self
    }

    /// Sets the theme that it was designed for.
    #[must_use]
    pub const fn theme(mut self, theme: Theme) -> Self {
        self.theme = Some(theme);
        self
    }

    /// Returns its URI, if a client may accept it: an `https:` or a `data:` URI (2025-11-25 icons,
    /// security considerations). `None` for every other scheme, such as `javascript:`, `file:` and
    /// `http:`.
    pub fn src(&self) -> Option<&str> {
        is_acceptable(&self.src).then_some(&*self.src)
    }

    /// Returns its URI as received, which a client must not use without a check of its own.
    pub fn unchecked_src(&self) -> &str {
        &self.src
    }

    /// Returns the memory that it allocates, in bytes.
    pub(crate) fn heap_size(&self) -> usize {
        let sizes: usize = self.sizes.iter().map(|size| size_of::<String>() + size.capacity()).sum();
        let texts = self.src.capacity() + self.mime_type.as_ref().map_or(0, String::capacity);
        texts + sizes + self.other.heap_size()
    }

    fn read(json: &RawJson) -> Result<Self, DecodeError> {
        let object = Object::read(json)?;
        let theme = object
            .str("theme")
            .and_then(|name| [Theme::Light, Theme::Dark].into_iter().find(|theme| theme.as_str() == name));
        let sizes = match object.kind("sizes") {
            // Drafts of 2025-11-25 and the programs written for them, as in HTML.
            Some(JsonKind::String) => {
                object.required_str("sizes")?.split_ascii_whitespace().map(String::from).collect()
            }
            _ => object.optional("sizes")?.unwrap_or_default(),
        };
        let keys: &[&str] =
            if theme.is_some() { &["src", "mimeType", "sizes", "theme"] } else { &["src", "mimeType", "sizes"] };
        Ok(Self {
            src: object.required("src")?,
            mime_type: object.optional("mimeType")?,
            sizes,
            theme,
            other: object.without(keys),
        })
    }

    fn write(&self) -> Object {
        Object::new()
            .with("src", self.src.as_str())
            .with_opt("mimeType", self.mime_type.as_deref())
            .with_opt("sizes", (!self.sizes.is_empty()).then_some(&self.sizes))
            .with_opt("theme", self.theme.map(Theme::as_str))
            .with_all(&self.other)
    }

    /// Decodes the member `icons`, which may be absent.
    pub(super) fn read_all(object: &Object) -> Result<Vec<Self>, DecodeError> {
        let icons = object.optional_array("icons")?.unwrap_or_default();
        icons.iter().map(Self::read).collect::<Result<_, _>>().map_err(|why| why.within("icons"))
    }

    /// Adds the member `icons`, if there are any and the revision has them.
    pub(super) fn add_all(icons: &[Self], rules: &Rules, object: &mut Object) {
        if rules.icons && !icons.is_empty() {
            object.set("icons", icons.iter().map(Self::write).collect::<Vec<_>>());
        }
    }
}

impl From<&str> for Icon {
    /// As [`Icon::new`].
    fn from(src: &str) -> Self {
        Self::new(src)
    }
}

/// Returns whether a client may accept an icon with this URI. Schemes are compared without case
/// (RFC 3986 section 3.1).
fn is_acceptable(src: &str) -> bool {
    let scheme = src.split_once(':').map_or("", |(scheme, _)| scheme);
    scheme.eq_ignore_ascii_case("https") || scheme.eq_ignore_ascii_case("data")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::version::ProtocolVersion;

    fn read(json: &str) -> Result<Vec<Icon>, DecodeError> {
        Icon::read_all(&Object::read(&RawJson::parse(String::from(json)).unwrap()).unwrap())
    }

    // covers: ICON-C-004
    #[test]
    fn only_https_and_data_icons_have_a_usable_uri() {
        for src in ["https://example.com/i.png", "data:image/png;base64,AAAA", "HTTPS://h/i", "Data:,x"] {
            let icons = read(&alloc::format!(r#"{{"icons":[{{"src":"{src}"}}]}}"#)).unwrap();
            assert_eq!((icons[0].src(), icons[0].unchecked_src()), (Some(src), src));
        }
        let schemes = ["javascript:alert(1)", "file:///etc/passwd", "ftp://h/i", "ws://h/i", "http://h/i", "ui://i"];
        for src in
            schemes.into_iter().chain(["", "i.png", "//h/i.png", " https://h/i", "https", "httpsx://h", "xdata:,"])
        {
            let icons = read(&alloc::format!(r#"{{"icons":[{{"src":"{src}"}}]}}"#)).unwrap();
            assert_eq!((icons[0].src(), icons[0].unchecked_src()), (None, src));
        }
    }

    #[test]
    #[should_panic(expected = "an https or a data URI")]
    fn icon_of_a_server_has_an_acceptable_uri() {
        let _ = Icon::new("http://example.com/i.png");
    }

    #[test]
    fn icons_round_trip_in_the_revisions_that_have_them() {
        let text = r#"{"icons":[{"src":"https://h/i","mimeType":"image/png","sizes":["48x48","any"],"theme":"dark","x":1},{"src":"data:,","theme":"sepia"}]}"#;
        let icons = read(text).unwrap();
        assert_eq!((icons[0].theme, icons[1].theme), (Some(Theme::Dark), None));
        let made = Icon::new("https://h/i").mime("image/png").size("48x48").size("any").theme(Theme::Dark);
        assert_eq!(Icon { other: Object::new(), ..icons[0].clone() }, made);
        for version in ProtocolVersion::ALL {
            let mut object = Object::new();
            Icon::add_all(&icons, &version.rules(), &mut object);
            let written = if version >= ProtocolVersion::V2025_11_25 { text } else { "{}" };
            assert_eq!(object.to_json().as_str(), written, "{version}");
        }
        assert_eq!(read(r#"{"icons":[{"src":"data:,","sizes":"16x16 32x32"}]}"#).unwrap()[0].sizes, ["16x16", "32x32"]);
        assert_eq!(read(r#"{"icons":null}"#), Ok(Vec::new()));
        for bad in
            [r#"{"icons":{}}"#, r#"{"icons":[{}]}"#, r#"{"icons":[{"src":"","sizes":1}]}"#, r#"{"icons":[{"src":1}]}"#]
        {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
