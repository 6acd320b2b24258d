use super::*;
use alloc::format;
use alloc::string::ToString;

fn json(text: &str) -> RawJson {
    RawJson::parse(text.as_bytes().to_vec()).unwrap()
}

#[test]
fn texts_of_a_peer_are_bounded_and_escaped() {
    let long = "ä".repeat(1000);
    for text in [
        Mismatch::new(&long, &long).to_string(),
        BadSchema::invalid(&long, &long).to_string(),
        BadSchema::reference(&long).to_string(),
        BadSchema::dialect(&long).to_string(),
    ] {
        assert!(text.len() < 1100, "{}", text.len());
    }
    assert_eq!(Mismatch::new("/a\n", "b\u{1b}").to_string(), r"b\u{1b} (at /a\n)");
    assert_eq!(BadSchema::reference("\n").to_string(), r"the reference \n leads out of the schema or to nothing");
    assert_eq!(Mismatch::new("", "why").to_string(), "why");
}

// Without `std`, nothing can catch a panic.
#[cfg(feature = "std")]
#[test]
fn panic_of_a_validator_is_an_error() {
    let panics = Validator::new(|_: &RawJson| panic!("at the schema"));
    assert_eq!(panics.compile(&json("{}")).unwrap_err(), BadSchema::Panicked);
    let checker = Checker::new(|_: &RawJson| panic!("at the value"));
    assert_eq!(checker.check(&json("{}")).unwrap_err().why(), "the validator panicked");
}

#[test]
fn validators_are_equal_if_they_are_the_same() {
    let make = || Validator::new(|_: &RawJson| Ok(Checker::new(|_: &RawJson| Ok(()))));
    let one = make();
    assert_eq!(one, one.clone());
    assert_ne!(one, make());
    let checker = one.compile(&json("{}")).unwrap();
    assert_eq!(checker, checker.clone());
    assert_ne!(checker, one.compile(&json("{}")).unwrap());
    assert_eq!(format!("{one:?} {checker:?}"), "Validator(..) Checker(..)");
}
