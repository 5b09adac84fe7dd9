// Creates a container in Azurite: node container.js ENDPOINT NAME
// ENDPOINT such as http://127.0.0.1:10000/devstoreaccount1. The key is the emulator's, which everybody knows:
// https://learn.microsoft.com/azure/storage/common/storage-use-azurite
const crypto = require("crypto");
const [, , endpoint, name] = process.argv;
const account = "devstoreaccount1";
const key = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
const date = new Date().toUTCString();
const version = "2021-12-02";
// Source: "Authorize with Shared Key" in the documentation of Azure Storage.
const text =
  "PUT" + "\n".repeat(12) + `x-ms-date:${date}\nx-ms-version:${version}\n` +
  `/${account}/${account}/${name}\nrestype:container`;
const signature = crypto.createHmac("sha256", Buffer.from(key, "base64")).update(text, "utf8").digest("base64");
fetch(`${endpoint}/${name}?restype=container`, {
  method: "PUT",
  headers: { "x-ms-date": date, "x-ms-version": version, Authorization: `SharedKey ${account}:${signature}` },
}).then(async (answer) => {
  if (answer.status !== 201) {
    console.error(answer.status, await answer.text());
    process.exit(1);
  }
});
