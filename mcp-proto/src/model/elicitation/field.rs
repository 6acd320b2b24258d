//! The fields of a form.

use crate::rpc::{DecodeError, JsonKind, Object, RawJson};
use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;

/// One field of a form.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Field {
    /// Its name in the content.
    pub name: String,
    /// Its name, for people.
    pub title: Option<String>,
    /// Its purpose.
    pub description: Option<String>,
    /// Whether the content must have it.
    pub required: bool,
    /// Its initial value.
    pub default: Option<RawJson>,
    /// The type of its value.
    pub kind: FieldKind,
}

/// The type of a field.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum FieldKind {
    /// A string.
    Text {
        /// Minimum number of characters.
        min: Option<u64>,
        /// Maximum number of characters.
        max: Option<u64>,
        /// `email`, `uri`, `date` or `date-time`. Not checked by this crate.
        format: Option<String>,
    },
    /// Any number.
    Number {
        /// Minimum.
        min: Option<f64>,
        /// Maximum.
        max: Option<f64>,
    },
    /// An integer.
    Integer {
        /// Minimum.
        min: Option<f64>,
        /// Maximum.
        max: Option<f64>,
    },
    /// A boolean.
    Boolean,
    /// One of several strings.
    Choice(Vec<Choice>),
    /// Any number of several strings, from 2025-11-25 on.
    Choices {
        /// The options.
        options: Vec<Choice>,
        /// Minimum number of choices.
        min: Option<u64>,
        /// Maximum number of choices.
        max: Option<u64>,
    },
    /// A schema that no revision defines here. Accepts any value.
    Other(RawJson),
}

/// One option of a choice.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Choice {
    /// Its value in the content.
    pub value: String,
    /// Its name, for people.
    pub title: Option<String>,
}

impl Field {
    fn new(name: &str, kind: FieldKind) -> Self {
        Self { name: name.into(), title: None, description: None, required: true, default: None, kind }
    }

    /// Creates a required text.
    pub fn text(name: &str) -> Self {
        Self::new(name, FieldKind::Text { min: None, max: None, format: None })
    }

    /// Creates a required number.
    pub fn number(name: &str) -> Self {
        Self::new(name, FieldKind::Number { min: None, max: None })
    }

    /// Creates a required integer.
    pub fn integer(name: &str) -> Self {
        Self::new(name, FieldKind::Integer { min: None, max: None })
    }

    /// Creates a required boolean.
    pub fn boolean(name: &str) -> Self {
        Self::new(name, FieldKind::Boolean)
    }

    /// Creates a required choice of one option.
    pub fn choice<S: Into<String>>(name: &str, options: impl IntoIterator<Item = S>) -> Self {
        Self::new(name, FieldKind::Choice(options.into_iter().map(|value| Choice::new(value, None)).collect()))
    }

    /// Creates a required choice of one option. Each option is a value with its name for people.
    pub fn titled_choice<V: Into<String>, T: Into<String>>(
        name: &str,
        options: impl IntoIterator<Item = (V, T)>,
    ) -> Self {
        let options = options.into_iter().map(|(value, title)| Choice::new(value, Some(title.into())));
        Self::new(name, FieldKind::Choice(options.collect()))
    }

    /// Creates a required choice of any number of options, from 2025-11-25 on.
    pub fn choices<S: Into<String>>(name: &str, options: impl IntoIterator<Item = S>) -> Self {
        let options = options.into_iter().map(|value| Choice::new(value, None)).collect();
        Self::new(name, FieldKind::Choices { options, min: None, max: None })
    }

    /// Makes the field optional.
    #[must_use]
    pub fn optional(mut self) -> Self {
        self.required = false;
        self
    }

    /// Sets its name for people.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// Sets its description.
    #[must_use]
    pub fn describe(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// Sets its default. Before 2025-11-25 only a boolean has one.
    #[must_use]
    pub fn default_value(mut self, value: impl Into<RawJson>) -> Self {
        self.default = Some(value.into());
        self
    }

    /// Sets the format of a text: `email`, `uri`, `date` or `date-time`. Does nothing for other
    /// types.
    #[must_use]
    pub fn format(mut self, wanted: &str) -> Self {
        if let FieldKind::Text { format, .. } = &mut self.kind {
            *format = Some(wanted.into());
        }
        self
    }

    /// Sets the minimum of a number, of the length of a text, or of the number of choices. A length
    /// or number of choices is rounded down and at least 0.
    #[must_use]
    pub fn min(mut self, least: f64) -> Self {
        match &mut self.kind {
            FieldKind::Number { min, .. } | FieldKind::Integer { min, .. } => *min = Some(least),
            FieldKind::Text { min, .. } | FieldKind::Choices { min, .. } => *min = Some(least as u64),
            _ => {}
        }
        self
    }

    /// Sets the maximum, as in [`min`](Self::min).
    #[must_use]
    pub fn max(mut self, greatest: f64) -> Self {
        match &mut self.kind {
            FieldKind::Number { max, .. } | FieldKind::Integer { max, .. } => *max = Some(greatest),
            FieldKind::Text { max, .. } | FieldKind::Choices { max, .. } => *max = Some(greatest as u64),
            _ => {}
        }
        self
    }

    pub(super) fn read(name: &str, json: &RawJson, required: bool) -> Result<Self, DecodeError> {
        let schema = Object::read(json)?;
        Ok(Self {
            name: name.into(),
            title: schema.optional("title")?,
            description: schema.optional("description")?,
            required,
            default: schema.get("default"),
            kind: FieldKind::read(json, &schema)?,
        })
    }

    pub(super) fn write(&self) -> Object {
        let schema = self.kind.write();
        let schema =
            schema.with_opt("title", self.title.as_deref()).with_opt("description", self.description.as_deref());
        schema.with_opt("default", self.default.clone())
    }
}

impl FieldKind {
    fn read(json: &RawJson, schema: &Object) -> Result<Self, DecodeError> {
        let kind: Option<String> = schema.optional("type")?;
        Ok(match kind.as_deref() {
            Some("string") => match Choice::read_all(schema, "oneOf")? {
                Some(options) => Self::Choice(options),
                None => Self::Text {
                    min: schema.optional("minLength")?,
                    max: schema.optional("maxLength")?,
                    format: schema.optional("format")?,
                },
            },
            Some("number") => Self::Number { min: schema.optional("minimum")?, max: schema.optional("maximum")? },
            Some("integer") => Self::Integer { min: schema.optional("minimum")?, max: schema.optional("maximum")? },
            Some("boolean") => Self::Boolean,
            Some("array") => Self::Choices {
                options: Choice::read_all(&schema.object("items")?, "anyOf")?.unwrap_or_default(),
                min: schema.optional("minItems")?,
                max: schema.optional("maxItems")?,
            },
            _ => Self::Other(json.clone()),
        })
    }

    fn write(&self) -> Object {
        let typed = |kind: &str| Object::new().with("type", kind);
        match self {
            Self::Text { min, max, format } => typed("string")
                .with_opt("minLength", *min)
                .with_opt("maxLength", *max)
                .with_opt("format", format.as_deref()),
            Self::Number { min, max } => bounds(typed("number"), *min, *max),
            Self::Integer { min, max } => bounds(typed("integer"), *min, *max),
            Self::Boolean => typed("boolean"),
            Self::Choice(options) => {
                // `enum` with `enumNames` is the only form with titles that every revision defines.
                let values: Vec<&String> = options.iter().map(|option| &option.value).collect();
                let schema = typed("string").with("enum", strings(&values));
                if options.iter().all(|option| option.title.is_none()) {
                    return schema;
                }
                let titles: Vec<&String> = options.iter().map(|o| o.title.as_ref().unwrap_or(&o.value)).collect();
                schema.with("enumNames", strings(&titles))
            }
            Self::Choices { options, min, max } => {
                let items = match options.iter().all(|option| option.title.is_none()) {
                    true => {
                        let values: Vec<&String> = options.iter().map(|option| &option.value).collect();
                        typed("string").with("enum", strings(&values))
                    }
                    false => {
                        let options = options.iter().map(|Choice { value, title }| {
                            let title = title.as_ref().unwrap_or(value);
                            Object::new().with("const", value.as_str()).with("title", title.as_str())
                        });
                        Object::new().with("anyOf", options.map(RawJson::from).collect::<Vec<_>>())
                    }
                };
                typed("array").with("items", items).with_opt("minItems", *min).with_opt("maxItems", *max)
            }
            Self::Other(json) => Object::read(json).unwrap_or_default(),
        }
    }

    pub(super) fn accepts(&self, value: &RawJson) -> Result<(), &'static str> {
        match self {
            Self::Text { min, max, .. } => {
                let text: String = value.decode().map_err(|_| "is not a string")?;
                let length = text.chars().count() as u64;
                within(length, *min, *max).then_some(()).ok_or("is too short or too long")
            }
            Self::Number { min, max } | Self::Integer { min, max } => {
                let number: f64 = value.decode().map_err(|_| "is not a number")?;
                if matches!(self, Self::Integer { .. }) && number % 1.0 != 0.0 {
                    return Err("is not a whole number");
                }
                within(number, *min, *max).then_some(()).ok_or("is out of its bounds")
            }
            Self::Boolean => (value.kind() == JsonKind::Bool).then_some(()).ok_or("is not a boolean"),
            Self::Choice(options) => {
                let chosen: String = value.decode().map_err(|_| "is not a string")?;
                options.iter().any(|option| option.value == chosen).then_some(()).ok_or("is not among the options")
            }
            Self::Choices { options, min, max } => {
                let chosen: Vec<String> = value.decode().map_err(|_| "is not an array of strings")?;
                let known: BTreeSet<&str> = options.iter().map(|option| option.value.as_str()).collect();
                if !chosen.iter().all(|one| known.contains(one.as_str())) {
                    return Err("is not among the options");
                }
                within(chosen.len() as u64, *min, *max).then_some(()).ok_or("are too few or too many")
            }
            Self::Other(_) => Ok(()),
        }
    }
}

impl Choice {
    pub(super) fn new(value: impl Into<String>, title: Option<String>) -> Self {
        Self { value: value.into(), title }
    }

    /// Decodes the options of a schema: `enum`, optionally with `enumNames`, or a list of `const`
    /// and `title` under `titled`.
    fn read_all(schema: &Object, titled: &str) -> Result<Option<Vec<Self>>, DecodeError> {
        if let Some(values) = schema.optional::<Vec<String>>("enum")? {
            let titles: Vec<String> = schema.optional("enumNames")?.unwrap_or_default();
            let mut titles = titles.into_iter();
            return Ok(Some(values.into_iter().map(|value| Self::new(value, titles.next())).collect()));
        }
        let Some(options) = schema.optional_array(titled)? else { return Ok(None) };
        let options = options.iter().map(|option| {
            let option = Object::read(option)?;
            Ok(Self { value: option.required("const")?, title: option.optional("title")? })
        });
        options.collect::<Result<_, DecodeError>>().map(Some)
    }
}

fn within<N: PartialOrd>(n: N, min: Option<N>, max: Option<N>) -> bool {
    min.is_none_or(|min| n >= min) && max.is_none_or(|max| n <= max)
}

/// Adds the bounds of a number. JSON has no infinity.
fn bounds(schema: Object, min: Option<f64>, max: Option<f64>) -> Object {
    let bound = |bound: Option<f64>| bound.filter(|n| n.is_finite()).and_then(|n| RawJson::encode(&n).ok());
    schema.with_opt("minimum", bound(min)).with_opt("maximum", bound(max))
}

fn strings<S: AsRef<str>>(strings: &[S]) -> RawJson {
    let strings: Vec<RawJson> = strings.iter().map(|string| string.as_ref().into()).collect();
    strings.into()
}
