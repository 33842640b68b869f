use super::*;

fn with(variables: &[(&str, &str)]) -> Result<Config, Problems> {
    let mut layers = Layers::defaults();
    layers.add_environment(variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    Config::new(&layers)
}

#[test]
fn the_default_file_says_what_the_rules_have_built_in() {
    let config = Config::new(&Layers::defaults()).unwrap();
    assert_eq!(config.timeout, TimeoutParams::default());
    assert_eq!(config.max_age, tidegate_core::limits::DEFAULT_MAX_AGE);
    assert_eq!(config.listen.to_string(), "127.0.0.1:8080");
    assert_eq!((config.max_event_bytes, config.max_batch_bytes), (1 << 20, 5 << 20));
    assert_eq!((config.api_rate_limit, config.extra_ca_file.is_none()), (None, true));
    assert_eq!(config.key_file(), PathBuf::from("./tidegate-data/secret.key"));
}

#[test]
fn flags_win_over_the_environment() {
    let mut layers = Layers::defaults();
    layers.add_environment([("TIDEGATE_LISTEN".to_owned(), "127.0.0.1:1".to_owned())]);
    layers.add_environment([("TIDEGATE_ALLOW_DESTINATIONS".to_owned(), "10.0.0.0/8, ::1/128".to_owned())]);
    layers.add_flag("listen", Written::One("127.0.0.1:2".to_owned()));
    let config = Config::new(&layers).unwrap();
    assert_eq!(config.listen.port(), 2);
    assert_eq!(config.allow_destinations.len(), 2);
    let shown: Vec<String> = layers
        .iter()
        .filter(|(key, ..)| *key == "listen")
        .map(|(_, value, origin)| format!("{value} {origin}"))
        .collect();
    assert_eq!(shown, ["\"127.0.0.1:2\" --listen"]);
}

#[test]
fn all_problems_are_told_at_once() {
    let refused = with(&[
        ("TIDEGATE_LISTEN", "nowhere"),
        ("TIDEGATE_RETENTION", "30"),
        ("TIDEGATE_MAX_IN_FLIGHT", "0"),
        ("TIDEGATE_TIMEOUT_MIN", "40s"),
        ("TIDEGATE_NO_SUCH_THING", "1"),
        ("TIDEGATE_SECRET_KEY", "not shown"),
        ("HOME", "/"),
    ])
    .unwrap_err();
    let text = refused.to_string();
    for part in
        ["listen", "retention", "max_in_flight", "timeout.max", "TIDEGATE_NO_SUCH_THING", "problems in the"]
    {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert!(!text.contains("not shown"), "{text}");
}
