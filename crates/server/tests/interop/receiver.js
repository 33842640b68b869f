// A receiver in JavaScript that trusts what the published library `standardwebhooks` verifies, and for Ed25519, which the
// library does not do, what the crypto module of Node.js verifies.
//
// It prints its port, then serves on it until its standard input ends:
//
//     PUT /secrets/NAME  a JSON list of secrets of one destination, or public keys (`whpk_…`)
//     POST /NAME         a webhook; 204 if it verifies under one of them, else 401
//     GET /received      what came in: the body, under which secrets it verified, which tampered copies verified
"use strict";

const crypto = require("node:crypto");
const http = require("node:http");
const { Webhook, WebhookVerificationError } = require("standardwebhooks");

const secrets = {};
const received = [];

// Whether it verifies; a body that is no JSON may be signed all the same.
function verifies(secret, body, headers) {
  if (secret.startsWith("whpk_")) return verifiesEd25519(secret, body, headers);
  try {
    new Webhook(secret).verify(body, headers, { jsonParse: false });
    return true;
  } catch (error) {
    if (error instanceof WebhookVerificationError) return false;
    throw error;
  }
}

function verifiesEd25519(publicKey, body, headers) {
  // The 12 bytes that say "an Ed25519 public key" in DER (RFC 8410).
  const prefix = Buffer.from("302a300506032b6570032100", "hex");
  const der = Buffer.concat([prefix, Buffer.from(publicKey.slice("whpk_".length), "base64")]);
  const key = crypto.createPublicKey({ key: der, format: "der", type: "spki" });
  const signed = Buffer.concat([Buffer.from(`${headers["webhook-id"]}.${headers["webhook-timestamp"]}.`), body]);
  return headers["webhook-signature"].split(" ").some((one) => {
    const [version, signature] = one.split(",");
    return version === "v1a" && crypto.verify(null, signed, key, Buffer.from(signature, "base64"));
  });
}

// The same message with one part changed each.
function tamperedCopies(body, headers) {
  const timestamp = Number(headers["webhook-timestamp"]);
  const nothing = Buffer.alloc(64).toString("base64");
  return [
    ["body", Buffer.concat([body, Buffer.from(" ")]), headers],
    ["id", body, { ...headers, "webhook-id": headers["webhook-id"] + "0" }],
    ["timestamp", body, { ...headers, "webhook-timestamp": String(timestamp + 1) }],
    ["old timestamp", body, { ...headers, "webhook-timestamp": String(timestamp - 3600) }],
    ["signature", body, { ...headers, "webhook-signature": `v1,${nothing} v1a,${nothing}` }],
  ];
}

function take(path, headers, body) {
  const known = secrets[path] ?? [];
  const verified = known.map((secret) => verifies(secret, body, headers));
  const copies = verified.includes(true) ? tamperedCopies(body, headers) : [];
  const fooling = copies.filter(([, body, headers]) => known.some((secret) => verifies(secret, body, headers)));
  received.push({
    path,
    id: headers["webhook-id"],
    content_type: headers["content-type"],
    body: body.toString("base64"),
    verified,
    fooled_by: fooling.map(([part]) => part),
  });
  return verified.includes(true) ? 204 : 401;
}

const server = http.createServer((request, response) => {
  const chunks = [];
  request.on("data", (chunk) => chunks.push(chunk));
  request.on("end", () => {
    const body = Buffer.concat(chunks);
    if (request.method === "GET") return response.end(JSON.stringify(received));
    if (request.method === "POST") response.statusCode = take(request.url, request.headers, body);
    if (request.method === "PUT") {
      secrets[request.url.slice("/secrets".length)] = JSON.parse(body);
      response.statusCode = 204;
    }
    response.end();
  });
});

server.listen(0, "127.0.0.1", () => console.log(server.address().port));
process.stdin.on("end", () => process.exit(0)).resume();
