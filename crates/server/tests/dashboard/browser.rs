//! A real browser without a window, driven as a person would drive it: it looks, types and presses.
//!
//! The words between us and the browser's driver are WebDriver's: JSON over HTTP.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use base64::Engine as _;
use serde_json::{Value, json};

use super::kit::{Client, free_port, millis, now, secs};

/// Whatever a page is to show, it shows within this: the machine may be busy with other tests.
const LONGEST: Duration = secs(60);
/// How WebDriver names an element.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// A browser. Dropped, it is gone.
pub(crate) struct Browser {
    driver: Child,
    client: Client,
    session: String,
    base_url: String,
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The driver ends the browser when it is asked to end.
        let pid = i32::try_from(self.driver.id()).ok().and_then(rustix::process::Pid::from_raw);
        if let Some(pid) = pid {
            let _gone = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
        }
        let _ended = self.driver.wait();
    }
}

/// How large its window is, and which colours its owner prefers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Looks {
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) dark: bool,
}

impl Browser {
    /// Opens a browser for the pages of a server.
    pub(crate) async fn open(base_url: &str) -> Self {
        use std::os::unix::process::CommandExt;
        let port = free_port();
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--", "chromedriver", &format!("--port={port}")]);
        // Times are shown in the zone of the viewer, which is known so.
        command
            .env("TZ", "UTC")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0);
        let driver = command.spawn().expect("chromedriver is there: `cargo xtask test` installs it");
        let client = Client::new(&format!("http://127.0.0.1:{port}"), "");
        let mut browser = Self { driver, client, session: String::new(), base_url: base_url.to_owned() };
        let began = now();
        loop {
            let status =
                browser.client.try_send(http::Method::GET, "/status", None, bytes::Bytes::new()).await;
            if status.is_ok_and(|answer| answer.json["value"]["ready"] == true) {
                break;
            }
            assert!(began.elapsed() < LONGEST, "the driver did not become ready");
            tokio::time::sleep(millis(20)).await;
        }
        let arguments = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--hide-scrollbars",
            "--lang=en-US",
            "--force-color-profile=srgb",
            "--window-size=1280,900",
        ];
        let options = json!({"capabilities": {"alwaysMatch": {
            "goog:chromeOptions": {"args": arguments},
            "goog:loggingPrefs": {"browser": "ALL"},
            "timeouts": {"script": 120_000, "pageLoad": 120_000},
        }}});
        let made = browser.client.post("/session", options).await;
        assert_eq!(made.status, 200, "no browser: {}", made.text());
        browser.session = made.json["value"]["sessionId"].as_str().expect("a session").to_owned();
        browser
    }

    async fn ask(&self, path: &str, body: Value) -> Result<Value, Value> {
        let answer = self.client.post(&format!("/session/{}{path}", self.session), body).await;
        let mut json = answer.json;
        let value = json["value"].take();
        if answer.status == 200 { Ok(value) } else { Err(value) }
    }

    async fn see(&self, path: &str) -> Result<Value, Value> {
        let answer = self.client.get(&format!("/session/{}{path}", self.session)).await;
        let mut json = answer.json;
        let value = json["value"].take();
        if answer.status == 200 { Ok(value) } else { Err(value) }
    }

    /// Goes to a page of the server.
    pub(crate) async fn go(&self, path: &str) {
        let url = format!("{}{path}", self.base_url);
        self.ask("/url", json!({"url": url})).await.unwrap_or_else(|error| panic!("{url}: {error}"));
    }

    /// Where it is: path and query.
    pub(crate) async fn path(&self) -> String {
        let url = self.see("/url").await.expect("an address");
        url.as_str().unwrap_or_default().trim_start_matches(&self.base_url).to_owned()
    }

    /// Runs a script in the page, and gives what it returns.
    pub(crate) async fn run(&self, script: &str) -> Value {
        let ran = self.ask("/execute/sync", json!({"script": script, "args": []})).await;
        ran.unwrap_or_else(|error| panic!("{script}: {error}"))
    }

    /// The same for a script that calls `arguments[arguments.length - 1]` when it is done.
    pub(crate) async fn run_later(&self, script: &str) -> Value {
        let ran = self.ask("/execute/async", json!({"script": script, "args": []})).await;
        ran.unwrap_or_else(|error| panic!("{error}"))
    }

    async fn find(&self, way: &str, what: &str) -> Option<String> {
        let found = self.ask("/element", json!({"using": way, "value": what})).await.ok()?;
        found[ELEMENT].as_str().map(str::to_owned)
    }

    /// Waits until something is there that can be acted upon, and does so.
    async fn act(&self, way: &str, what: &str, action: &str, body: &Value) {
        let began = now();
        loop {
            let tried = match self.find(way, what).await {
                // What is live may be replaced between two looks; then it is looked for again.
                Some(element) => {
                    self.scroll_to(&element).await;
                    let acted = self.ask(&format!("/element/{element}/{action}"), body.clone()).await;
                    acted.map_err(|error| error.to_string())
                }
                None => Err("it is not there".to_owned()),
            };
            match tried {
                Ok(_) => return,
                Err(error) if began.elapsed() > LONGEST => {
                    panic!("{what} on {}: {error}\n{}", self.path().await, self.text("body").await);
                }
                Err(_) => tokio::time::sleep(millis(30)).await,
            }
        }
    }

    /// Brings something to the middle of the window, as somebody who wants to press it does.
    async fn scroll_to(&self, element: &str) {
        let script = "arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})";
        // One that is gone by now is looked for again.
        let _gone = self.ask("/execute/sync", json!({"script": script, "args": [{ELEMENT: element}]})).await;
    }

    /// Presses the button or link with these words.
    pub(crate) async fn press(&self, words: &str) {
        let path = format!(
            "//button[normalize-space()='{words}']|//a[normalize-space()='{words}']|//summary[normalize-space()='{words}']"
        );
        self.act("xpath", &path, "click", &json!({})).await;
    }

    /// Presses what a selector names.
    pub(crate) async fn press_on(&self, selector: &str) {
        self.act("css selector", selector, "click", &json!({})).await;
    }

    /// Writes into a field, in place of what is there.
    pub(crate) async fn fill(&self, name: &str, text: &str) {
        let selector = format!("[name='{name}']");
        self.act("css selector", &selector, "clear", &json!({})).await;
        self.act("css selector", &selector, "value", &json!({"text": text})).await;
    }

    /// Chooses one of some options.
    pub(crate) async fn choose(&self, name: &str, value: &str) {
        self.press_on(&format!("select[name='{name}'] option[value='{value}']")).await;
    }

    /// What somebody reads there; nothing where there is nothing.
    pub(crate) async fn text(&self, selector: &str) -> String {
        let script = format!(
            "const part = document.querySelector({}); return part ? part.innerText : '';",
            json!(selector)
        );
        self.run(&script).await.as_str().unwrap_or_default().to_owned()
    }

    /// Waits until the part that a selector names reads so.
    pub(crate) async fn reads(&self, selector: &str, words: &str) {
        let began = now();
        loop {
            let text = self.text(selector).await;
            if text.contains(words) {
                return;
            }
            assert!(
                began.elapsed() < LONGEST,
                "{selector} on {} does not read “{words}” but: {text}",
                self.path().await
            );
            tokio::time::sleep(millis(50)).await;
        }
    }

    /// Looks of the window.
    pub(crate) async fn look(&self, looks: Looks) {
        let size = json!({"cmd": "Emulation.setDeviceMetricsOverride", "params": {
            "width": looks.width, "height": looks.height, "deviceScaleFactor": 1, "mobile": looks.width < 600}});
        self.ask("/goog/cdp/execute", size).await.expect("a size");
        let scheme = if looks.dark { "dark" } else { "light" };
        let media = json!({"cmd": "Emulation.setEmulatedMedia", "params": {"features": [{"name": "prefers-color-scheme", "value": scheme}]}});
        self.ask("/goog/cdp/execute", media).await.expect("colours");
    }

    /// Switches scripts off, or on again.
    pub(crate) async fn scripts(&self, on: bool) {
        let body = json!({"cmd": "Emulation.setScriptExecutionDisabled", "params": {"value": !on}});
        self.ask("/goog/cdp/execute", body).await.expect("scripts are switched");
    }

    /// A picture of the whole page, up to a height.
    pub(crate) async fn picture(&self, highest: u32) -> Vec<u8> {
        let whole = self.run("return document.documentElement.scrollHeight").await.as_u64().unwrap_or(900);
        let width = self.run("return innerWidth").await.as_u64().unwrap_or(1280);
        let clip =
            json!({"x": 0, "y": 0, "width": width, "height": whole.min(u64::from(highest)), "scale": 1});
        let body = json!({"cmd": "Page.captureScreenshot", "params": {"format": "png", "captureBeyondViewport": true, "clip": clip}});
        let taken = self.ask("/goog/cdp/execute", body).await.expect("a picture");
        let text = taken["data"].as_str().expect("its bytes");
        base64::engine::general_purpose::STANDARD.decode(text).expect("they are base64")
    }

    /// What the browser complained about since it was asked last: scripts that failed, and what the page's policy refused.
    pub(crate) async fn complaints(&self) -> Vec<String> {
        let log = self.ask("/se/log", json!({"type": "browser"})).await.expect("a log");
        let lines = log.as_array().cloned().unwrap_or_default();
        let severe = lines.iter().filter(|line| line["level"] == "SEVERE");
        severe.filter_map(|line| line["message"].as_str().map(str::to_owned)).collect()
    }

    /// Signs in with a key.
    pub(crate) async fn sign_in(&self, key: &str) {
        self.go("/sign-in").await;
        self.fill("key", key).await;
        self.press("Sign in").await;
        self.reads("h1", "Overview").await;
    }
}
