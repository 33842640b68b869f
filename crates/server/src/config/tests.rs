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

/// Whoever writes one of several settings that belong together is told of the one that they wrote.
#[test]
fn a_default_is_never_what_is_wrong() {
    let told = |variables: &[(&str, &str)]| with(variables).unwrap_err().to_string();
    let text = told(&[("TIDEGATE_TIMEOUT_MIN", "40s")]);
    assert_eq!(
        text,
        "1 problem in the configuration:\n  timeout.min is \"40s\" (TIDEGATE_TIMEOUT_MIN); allowed: \
         timeout.min ≤ timeout.default ≤ timeout.max; where nothing is said, timeout.default is \"10s\" and \
         timeout.max is \"30s\""
    );
    let text = told(&[("TIDEGATE_TIMEOUT_DEFAULT", "40s"), ("TIDEGATE_TIMEOUT_MAX", "20s")]);
    assert!(text.contains("timeout.default is \"40s\" (TIDEGATE_TIMEOUT_DEFAULT), timeout.max is"), "{text}");
    let text = told(&[("TIDEGATE_TIMEOUT_MAX", "5min")]);
    assert!(text.contains("timeout.max is \"5min\" (TIDEGATE_TIMEOUT_MAX); allowed: 1 s to 2 min"), "{text}");
}

#[test]
fn a_secret_is_checked_and_an_empty_one_is_none() {
    let config = with(&[("TIDEGATE_SECRET_KEY", ""), ("TIDEGATE_BOOTSTRAP_KEY", "")]).unwrap();
    assert!(config.secret_key.is_none() && config.bootstrap_key.is_none());
    let given = [
        ("TIDEGATE_SECRET_KEY", "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="),
        ("TIDEGATE_BOOTSTRAP_KEY", "tg_0123456789012345678901234567890123456789"),
    ];
    let config = with(&given).unwrap();
    assert_eq!(config.secret_key.as_ref().map(Secret::reveal), Some(given[0].1));
    assert_eq!(config.bootstrap_key.as_ref().map(Secret::reveal), Some(given[1].1));
    assert!(!format!("{config:?}").contains("AAEC"), "{config:?}");
    let refused = with(&[("TIDEGATE_SECRET_KEY", "hidden one"), ("TIDEGATE_BOOTSTRAP_KEY", "hidden two")]);
    let text = refused.unwrap_err().to_string();
    assert!(text.starts_with("2 problems") && !text.contains("hidden"), "{text}");
}

/// A comment that names a range (`1h to 30d`) names the one that is taken.
#[test]
fn the_default_file_names_the_ranges_that_are_taken() {
    let mut seen = Vec::new();
    let lines: Vec<&str> = DEFAULT_FILE.lines().collect();
    for pair in lines.windows(2) {
        let (words, Some((key, _))) =
            (pair[0].split([' ', '.', ':']).collect::<Vec<_>>(), pair[1].split_once(" = "))
        else {
            continue;
        };
        let ranges = words.windows(3).filter(|three| pair[0].starts_with('#') && three[1] == "to");
        for (least, most) in
            ranges.filter_map(|three| units::duration(three[0]).zip(units::duration(three[2])))
        {
            let variable = format!("TIDEGATE_{}", key.to_uppercase());
            let takes = |value: i64| with(&[(&variable, &format!("{value}ms"))]).is_ok();
            assert!(takes(least.get()) && takes(most.get()), "{key}");
            assert!(!takes(least.get() - 1) && !takes(most.get() + 1), "{key}");
            seen.push(key);
        }
    }
    assert_eq!(seen, ["max_age", "retention"]);
}
