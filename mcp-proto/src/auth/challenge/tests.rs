use super::*;
use alloc::format;
use alloc::string::ToString;
use proptest::prelude::*;

/// Returns the challenges in a form that is short to write: `scheme name=value name=value`.
fn read(fields: &[&str]) -> Vec<String> {
    let show = |challenge: AuthChallenge| {
        let token68 = challenge.token68.map(|text| format!(" <{text}>")).unwrap_or_default();
        let params = challenge.params.iter().map(|(name, value)| format!(" {name}=[{value}]"));
        format!("{}{token68}{}", challenge.scheme, params.collect::<String>())
    };
    parse(fields.iter().copied()).into_iter().map(show).collect()
}

#[track_caller]
fn check(table: &[(&str, &[&str])]) {
    for (field, wanted) in table {
        assert_eq!(read(&[field]), *wanted, "{field}");
    }
}

// covers: B-235, AUTHD-C-005
#[test]
fn field_has_any_number_of_challenges() {
    check(&[
        ("", &[]),
        (" , ,\t,", &[]),
        ("Bearer", &["bearer"]),
        ("Bearer, Negotiate ,Basic", &["bearer", "negotiate", "basic"]),
        // RFC 9110 section 11.6.1.
        (
            r#"Basic realm="simple", Newauth realm="apps", type=1, title="Login to \"apps\"""#,
            &["basic realm=[simple]", r#"newauth realm=[apps] type=[1] title=[Login to "apps"]"#],
        ),
        (
            r#"Newauth realm="apps", type=1, title="Login to \"apps\"", Basic realm="simple""#,
            &[r#"newauth realm=[apps] type=[1] title=[Login to "apps"]"#, "basic realm=[simple]"],
        ),
        // RFC 9728 section 5.1, RFC 6750 section 3.
        (
            r#"Bearer resource_metadata="https://h/.well-known/oauth-protected-resource""#,
            &["bearer resource_metadata=[https://h/.well-known/oauth-protected-resource]"],
        ),
        (
            r#"Bearer realm="example", error="invalid_token", error_description="The token expired""#,
            &["bearer realm=[example] error=[invalid_token] error_description=[The token expired]"],
        ),
    ]);
}

// covers: B-235
#[test]
fn case_and_white_space_do_not_matter() {
    check(&[
        ("  bEaReR\tReAlM = \"A\" ,SCOPE\t=\tb  ", &["bearer realm=[A] scope=[b]"]),
        ("Bearer   realm=a", &["bearer realm=[a]"]),
        ("Bearer , realm=a,, scope=b", &["bearer realm=[a] scope=[b]"]),
        (",Bearer realm=a,,,Basic,", &["bearer realm=[a]", "basic"]),
    ]);
}

// covers: B-235
#[test]
fn quoted_text_may_contain_everything() {
    check(&[
        (r#"Bearer realm="a, Basic realm=b", scope="c d""#, &["bearer realm=[a, Basic realm=b] scope=[c d]"]),
        (r#"Bearer realm="\"\\\a\,", scope=c"#, &[r#"bearer realm=["\a,] scope=[c]"#]),
        (r#"Bearer realm="", scope=c"#, &["bearer realm=[] scope=[c]"]),
        ("Bearer realm=\"\u{e9}=\", x=y", &["bearer realm=[\u{e9}=] x=[y]"]),
    ]);
}

// covers: B-235
#[test]
fn scheme_may_have_one_value_in_place_of_parameters() {
    check(&[
        ("Negotiate a87421000492aa874209af8bc028==", &["negotiate <a87421000492aa874209af8bc028==>"]),
        ("NTLM TlRMTVNTUAAC+/-._~=", &["ntlm <TlRMTVNTUAAC+/-._~=>"]),
        ("Negotiate abc= , Bearer realm=x", &["negotiate <abc=>", "bearer realm=[x]"]),
        ("Negotiate abc, realm=x, Bearer realm=y", &["negotiate <abc>", "bearer realm=[y]"]),
        ("Bearer a=b=", &["bearer a=[b=]"]),
    ]);
}

// covers: B-235
#[test]
fn what_is_no_challenge_is_skipped_up_to_the_next_one() {
    check(&[
        ("realm=x, scope=y, Bearer a=b", &["bearer a=[b]"]),
        ("@, \"Bearer x=y, Basic\", Bearer a=b", &["bearer a=[b]"]),
        ("Bearer: realm=x, error=y, Basic a=b", &["basic a=[b]"]),
        ("Bearer a=b, /, c=d, Basic e=f", &["bearer a=[b]", "basic e=[f]"]),
        ("Bearer a=\"b, c=d", &["bearer"]),
        ("Bearer a=b, c=\"d\\", &["bearer a=[b]"]),
        ("Bearer \u{1f600}, a=b", &["bearer a=[b]"]),
        ("Bearer a=, Basic b=c, =d, e=f", &["bearer <a=>", "basic b=[c]"]),
        ("Bearer a=b, c=, d=e, f = , g=h", &["bearer a=[b] d=[e] g=[h]"]),
    ]);
}

// covers: B-235
#[test]
fn common_deviations_are_tolerated() {
    check(&[
        (r#"Bearer realm="x" resource_metadata="https://h/m""#, &["bearer realm=[x] resource_metadata=[https://h/m]"]),
        (
            "Bearer resource_metadata=https://h/m?a=b, scope=c",
            &["bearer resource_metadata=[https://h/m?a=b] scope=[c]"],
        ),
        // The text has lost its quotation marks: none of it is used.
        ("Bearer error=a, error_description=No token given, scope=b", &["bearer error=[a] scope=[b]"]),
        ("Bearer realm=x Basic realm=y, scope=z", &["bearer scope=[z]"]),
    ]);
}

// covers: B-235
#[test]
fn fields_follow_each_other_and_do_not_mix() {
    let fields = ["Basic realm=\"x", "error=y, Bearer a=b", "c=d", "DPoP algs=\"ES256\", Bearer e=f"];
    assert_eq!(read(&fields), ["basic", "bearer a=[b]", "dpop algs=[ES256]", "bearer e=[f]"]);
}

// covers: B-235
#[test]
fn fields_have_a_limited_size() {
    let many = "Bearer a=b, ".repeat(20);
    assert_eq!(parse([&*many, &*many]).len(), 16);
    let long = format!("Bearer realm=\"{}\"", "x".repeat(8 << 10));
    assert_eq!(read(&[&long, "Basic"]), ["basic"]);
    let half = format!("Bearer realm=\"{}\"", "x".repeat(5 << 10));
    assert_eq!(parse([&*half, &*half, "Basic"]).len(), 2);
}

// covers: B-235
#[test]
fn first_parameter_of_a_name_counts_unless_it_is_empty() {
    let challenges = parse([r#"Bearer scope="", SCOPE=a, scope=b"#]);
    assert_eq!(challenges[0].param("scope"), Some("a"));
    assert_eq!((challenges[0].param("Scope"), challenges[0].param("realm")), (None, None));
}

fn token(fields: &[&str]) -> Option<TokenChallenge> {
    TokenChallenge::of(fields.iter().copied())
}

// covers: B-235, AUTHD-C-005
#[test]
fn challenge_that_says_something_comes_first() {
    for fields in [&[][..], &["Basic realm=x"], &["Negotiate, Digest resource_metadata=\"https://h\""]] {
        assert_eq!(token(fields), None, "{fields:?}");
    }
    for fields in [&["Bearer"][..], &["Basic, BEARER realm=x, scope=\"\""], &["Bearer abc", "Bearer scope=\"\\\\\""]] {
        assert_eq!(token(fields), Some(TokenChallenge::default()), "{fields:?}");
    }
    let found =
        token(&["Bearer", r#"DPoP algs=c, Bearer error=invalid_token, scope="b a", resource_metadata=https://h/m"#]);
    let found = found.unwrap();
    assert_eq!(found.resource_metadata.as_deref(), Some("https://h/m"));
    assert_eq!(found.scope.as_ref().map(ToString::to_string).as_deref(), Some("a b"));
    assert_eq!(found.error.as_deref(), Some("invalid_token"));
    assert!(!found.is_insufficient_scope());
    let first = token(&["Bearer error=\"x\", Bearer error=\"y\""]).unwrap();
    assert_eq!(first.error.as_deref(), Some("x"));
}

// covers: DPOP-C-006
#[test]
fn challenge_for_a_bound_token_is_read() {
    let none = ProofAlgs::listed([].into_iter());
    for (fields, algs, fault) in [
        (&["DPoP"][..], ProofAlgs::ALL, None),
        (&["Bearer realm=x", "dpop algs=\"RS256 ES256\""], ProofAlgs::listed(["ES256"].into_iter()), None),
        (&["DPoP algs=\"RS256\", error=\"invalid_token\""], none, None),
        (&["Bearer, DPoP error=\"use_dpop_nonce\""], ProofAlgs::ALL, Some(ProofFault::Nonce)),
        (&["DPoP error=invalid_dpop_proof, Bearer"], ProofAlgs::ALL, Some(ProofFault::Invalid)),
        (&["Bearer error=x", "DPoP error=\"USE_DPOP_NONCE\""], ProofAlgs::ALL, None),
    ] {
        assert_eq!(token(fields).unwrap().dpop, Some(DpopChallenge { algs, fault }), "{fields:?}");
    }
    assert_eq!(token(&["Bearer error=\"use_dpop_nonce\""]).unwrap().dpop, None);
    let found = token(&["DPoP resource_metadata=\"https://h/m\", scope=a"]).unwrap();
    assert_eq!(found.resource_metadata.as_deref(), Some("https://h/m"));
    assert!(token(&["DPoP error=\"insufficient_scope\""]).unwrap().is_insufficient_scope());
}

#[test]
fn demand_for_more_scopes_is_recognized() {
    for (field, is_one) in [
        ("Bearer error=\"insufficient_scope\", scope=\"files:write\"", true),
        ("Bearer error=insufficient_scope", true),
        ("Bearer error=\"Insufficient_Scope\"", false),
        ("Bearer scope=\"insufficient_scope\"", false),
    ] {
        assert_eq!(token(&[field]).unwrap().is_insufficient_scope(), is_one, "{field}");
    }
}

/// Writes a value as a quoted string.
fn quoted(value: &str) -> String {
    format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\""))
}

proptest! {
    // covers: B-235
    #[test]
    fn any_fields_are_read_within_bounds(
        fields in prop::collection::vec(
            prop_oneof![".*", "[Ba= ,\"\\\\\t]{0,40}", "((Bearer|x) ?(a ?= ?(\"[^\"]*\"?|b))?[ ,]*){0,30}"],
            0..4,
        )
    ) {
        let len: usize = fields.iter().map(String::len).sum();
        let challenges = parse(fields.iter().map(String::as_str));
        prop_assert!(challenges.len() <= 16);
        let held = challenges.iter().map(|challenge| {
            let params = challenge.params.iter().map(|(name, value)| name.len() + value.len());
            challenge.scheme.len() + challenge.token68.as_ref().map_or(0, String::len) + params.sum::<usize>()
        });
        prop_assert!(held.sum::<usize>() <= len);
        prop_assert!(challenges.iter().all(|challenge| challenge.token68.is_none() || challenge.params.is_empty()));
    }

    // covers: B-235
    #[test]
    fn what_is_written_is_read(
        challenges in prop::collection::vec(
            ("[a-z][a-z0-9!#$-]{0,8}", prop::collection::vec(("[a-z_*]{1,8}", "[ -~\u{e9}]{0,12}"), 0..4)),
            0..5,
        ),
        comma in prop::sample::select(&[",", ", ", " ,", "\t,, "][..]),
        equals in prop::sample::select(&["=", " = "][..]),
    ) {
        let text: Vec<_> = challenges.iter().map(|(scheme, params)| {
            let params = params.iter().map(|(name, value)| format!("{name}{equals}{}", quoted(value)));
            format!("{scheme} {}", params.collect::<Vec<_>>().join(comma))
        }).collect();
        let wanted: Vec<_> = challenges.into_iter().map(|(scheme, params)| {
            AuthChallenge { scheme, token68: None, params }
        }).collect();
        prop_assert_eq!(parse([&*text.join(comma)]), wanted);
    }
}
