import { expect, test } from "vitest";
import { clientName, endpointOf, snippetsFor } from "./snippets";

const origin = "http://127.0.0.1:8787";
const text = (client: string, target: { server: string | null; token?: string }) =>
  snippetsFor({ origin, server: target.server, token: target.token ?? null }).find(
    (snippet) => snippet.client === client,
  )!.text;

test("one server and all of them have an address", () => {
  expect(endpointOf({ origin, server: "my files" })).toBe(`${origin}/mcp/my%20files`);
  expect(endpointOf({ origin, server: null })).toBe(`${origin}/mcp`);
});

test("a name that clients refuse is made one that they take", () => {
  expect([clientName("my files!"), clientName("日本"), clientName(null)]).toEqual(["my-files", "cofer", "cofer"]);
});

test("cofer connect needs no token, and names the server as it is", () => {
  expect(JSON.parse(text("connect", { server: "my files" }))).toEqual({
    mcpServers: { "my-files": { command: "cofer", args: ["connect", "my files"] } },
  });
  expect(JSON.parse(text("connect", { server: null })).mcpServers.cofer.args).toEqual(["connect"]);
});

test("no snippet holds the token unless it is asked for", () => {
  const all = (token: string | null) => snippetsFor({ origin, server: "fs", token }).map((snippet) => snippet.text);
  expect(all(null).join()).not.toContain("s3cret");
  expect(all("s3cret").filter((snippet) => snippet.includes("Bearer s3cret"))).toHaveLength(3);
  expect(text("claude", { server: "fs" })).toBe(
    `claude mcp add --transport http fs ${origin}/mcp/fs --header "Authorization: Bearer $COFER_TOKEN"`,
  );
});

test("VS Code asks for the token where it is not in the file", () => {
  const asked = JSON.parse(text("vscode", { server: "fs" }));
  expect(asked.servers.fs.headers.Authorization).toBe("Bearer ${input:cofer-token}");
  expect(asked.inputs[0].id).toBe("cofer-token");
  expect(JSON.parse(text("vscode", { server: "fs", token: "t" })).inputs).toBeUndefined();
});
