// A client of the official TypeScript SDK: lists tools, calls one, is asked something by another, and
// writes what it saw as one line of JSON. Arguments: MODULES VERSION DOOR; DOOR is a URL, for which the token
// is in TOKEN, or a program to be started with `connect`.
const { createRequire } = require("node:module");

const [modules, version, door] = process.argv.slice(2);
const load = createRequire(`${modules}/`);
const info = { name: `typescript-${version}`, version: "1" };
const headers = { Authorization: `Bearer ${process.env.TOKEN}` };
const reply = async () => ({ action: "accept", content: { response: "me" } });

function open() {
  const capabilities = { elicitation: {} };
  if (version === "v1") {
    const { Client } = load("@modelcontextprotocol/sdk/client/index.js");
    const { StreamableHTTPClientTransport } = load("@modelcontextprotocol/sdk/client/streamableHttp.js");
    const { ElicitRequestSchema } = load("@modelcontextprotocol/sdk/types.js");
    const client = new Client(info, { capabilities });
    client.setRequestHandler(ElicitRequestSchema, reply);
    const { StdioClientTransport } = load("@modelcontextprotocol/sdk/client/stdio.js");
    return [client, transport(StreamableHTTPClientTransport, StdioClientTransport)];
  }
  const { Client, StreamableHTTPClientTransport } = load("@modelcontextprotocol/client");
  const mode = version === "v2-modern" ? { pin: "2026-07-28" } : "legacy";
  const client = new Client(info, { capabilities, versionNegotiation: { mode } });
  client.setRequestHandler("elicitation/create", reply);
  const { StdioClientTransport } = load("@modelcontextprotocol/client/stdio");
  return [client, transport(StreamableHTTPClientTransport, StdioClientTransport)];
}

function transport(Http, Stdio) {
  if (door.startsWith("http")) return new Http(new URL(door), { requestInit: { headers } });
  return new Stdio({ command: door, args: ["connect"], env: process.env });
}

async function main() {
  const [client, transport] = open();
  await client.connect(transport);
  const { tools } = await client.listTools();
  const called = await client.callTool({ name: "w__echo", arguments: { text: "안녕 \u{1F44B}" } });
  const seen = [];
  const onprogress = (progress) => seen.push(progress.progress);
  const options = version === "v1" ? [undefined, { onprogress }] : [{ onprogress }];
  await client.callTool({ name: "x__test_tool_with_progress", arguments: {} }, ...options);
  const asked = await client.callTool({ name: "x__test_elicitation", arguments: { message: "Who?" } });
  const names = tools.map((tool) => tool.name);
  console.log(JSON.stringify({ names, echo: called.content[0].text, asked: asked.content[0].text, progress: seen }));
  await client.close();
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
