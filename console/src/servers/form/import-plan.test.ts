import { expect, test } from "vitest";
import { type PlannedServer, freeName, planImport, registrationOf } from "./import-plan";
import { parseJson, toJson } from "./jsonc";

function servers(text: string): PlannedServer[] {
  const plan = planImport(text);
  if (!("servers" in plan)) throw new Error(JSON.stringify(plan));
  return plan.servers;
}

const server = '{"command": "npx", "args": ["-y", "x"], "env": {"A": 1, "B": null}}';

test.each([
  ["Claude, Cursor", `{"mcpServers": {"fs": ${server}}, "theme": "dark"}`],
  ["VS Code", `{"inputs": [], "servers": {"fs": ${server}}}`],
  ["VS Code settings", `{"mcp": {"servers": {"fs": ${server}}}}`],
  ["a bare map", `{"fs": ${server}}`],
  ["one server", '{"name": "fs", "command": "npx", "args": ["-y", "x"], "env": {"A": 1, "B": null}}'],
])("the shape of %s is read", (_client, text) => {
  const [only] = servers(text);
  expect(only).toMatchObject({ name: "fs", argv: ["npx", "-y", "x"], unfit: null });
  expect(registrationOf(only!)).toEqual({ name: "fs", command: "npx", args: ["-y", "x"], environment: { A: "1" } });
});

test("comments and trailing commas are tolerated, also beside strings that look like them", () => {
  const text =
    '{ // a "comment"\n "mcpServers": { "a": { "command": "x", /* , */ "args": ["//y", "/*z*/", ",}",], }, }, }';
  expect(servers(text)[0]!.argv).toEqual(["x", "//y", "/*z*/", ",}"]);
  expect(toJson(text)).toHaveLength(text.length);
});

test("what cannot be a server is kept in the table and said to be none", () => {
  expect(
    servers(
      '{"mcpServers": {"a": 3, "b": {"args": []}, "c": {"url": "https://x/mcp"}, "d": {"image": "mcp/time"}}}',
    ).map(({ unfit }) => unfit),
  ).toEqual(["notObject", "nothing", null, null]);
});

test.each(["[]", "3", "{}", '{"a": 1}', '{"a": {"command": "x"}, "b": 1}'])("%s holds no servers", (text) => {
  expect(planImport(text)).toEqual({ none: true });
});

test("broken JSON says where it breaks", () => {
  expect(planImport('{\n  "a": nope\n}')).toEqual({ problem: { found: "nope", line: 2, column: 8 } });
  expect(planImport('{\n  "a": [1 2]}')).toEqual({ problem: { found: "2", line: 2, column: 11 } });
  expect(parseJson('{"a": ')).toEqual({ problem: { found: null, line: 1, column: 7 } });
  expect(parseJson('{"a": 1} x')).toEqual({ problem: { found: "x", line: 1, column: 10 } });
  expect(parseJson('"a\nb"')).toMatchObject({ problem: { line: 1, column: 1 } });
});

test("a server that has to be renamed is offered a name that is free", () => {
  const taken = (name: string) => ["fs", "fs 2"].includes(name);
  expect([freeName("fs", taken), freeName("db", taken)]).toEqual(["fs 3", "db 2"]);
});
