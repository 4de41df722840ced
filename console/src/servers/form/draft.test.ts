import { expect, test } from "vitest";
import { serverView } from "../../test/server";
import {
  MASK,
  argumentsOf,
  argvOfDraft,
  bodyOf,
  draftOf,
  draftOfTemplate,
  emptyDraft,
  envRow,
  parseEnvBlock,
  portRow,
} from "./draft";
import { TEMPLATES } from "../templates";

test("each line is one argument, exactly as it stands", () => {
  // covers: MGR-3
  expect(argumentsOf("")).toEqual([]);
  expect(argumentsOf("-y\n a b \r\n--x=1 2\n")).toEqual(["-y", " a b ", "--x=1 2"]);
  expect(argumentsOf("a\n\nb")).toEqual(["a", "", "b"]);
});

test("a new server asks for what was typed and the defaults of the seed", () => {
  // covers: MGR-1, MGR-2
  const body = bodyOf({ ...emptyDraft(), name: " fs ", command: " npx ", args: "-y" });
  expect(body).toMatchObject({
    name: "fs",
    command: "npx",
    args: ["-y"],
    enabled: true,
    include_resources: false,
    environment: {},
    image: null,
    url: null,
    ports: [],
    volumes: [],
  });
});

test("what belongs to another kind of server is not sent", () => {
  const both = {
    ...emptyDraft(),
    name: "x",
    command: "npx",
    image: "mcp/time",
    volumes: "/data\n\n /b ",
    ports: [portRow("8080"), portRow("")],
    requireGvisor: true,
  };
  expect(bodyOf({ ...both, kind: "container" })).toMatchObject({
    command: null,
    image: "mcp/time",
    volumes: ["/data", "/b"],
    ports: [{ container: 8080 }],
    require: "gvisor",
    network: "egress",
  });
  expect(bodyOf({ ...both, kind: "process" })).toMatchObject({
    command: "npx",
    image: null,
    volumes: [],
    ports: [],
    require: null,
  });
  expect(bodyOf({ ...both, kind: "remote", url: "http://x", args: "a" })).toMatchObject({
    command: null,
    image: null,
    url: "http://x",
    args: [],
    environment: {},
    headers: {},
  });
});

test("editing without a change sends back what was there, and no secret", () => {
  const server = serverView({ name: "x", environment: { TOKEN: MASK, A: MASK }, args: ["a b"], cwd: "/tmp" });
  expect(bodyOf(draftOf(server))).toMatchObject({
    name: "x",
    command: "npx",
    args: ["a b"],
    cwd: "/tmp",
    environment: { TOKEN: MASK, A: MASK },
    resource_limits: server.resource_limits,
    heartbeat: server.heartbeat,
  });
});

test("headers belong to remote servers, and their values stay where they are", () => {
  const server = serverView({ name: "x", kind: "remote", command: null, url: "https://x/mcp" });
  const draft = draftOf({ ...server, headers: { Authorization: MASK } });
  expect(bodyOf(draft)).toMatchObject({ url: "https://x/mcp", headers: { Authorization: MASK } });
  const more = { ...draft, headers: [...draft.headers, envRow("X-Team", "blue")] };
  expect(bodyOf(more).headers).toEqual({ Authorization: MASK, "X-Team": "blue" });
  expect(bodyOf({ ...more, kind: "process" })).toMatchObject({ headers: {}, auth: null, audience: null });
});

test("how requests are signed is sent back, taken away, and only a remote server's", () => {
  const server = serverView({ name: "x", kind: "remote", command: null, url: "https://x/mcp" });
  const draft = draftOf({ ...server, auth: "google_id_token", audience: "https://other" });
  expect(bodyOf(draft)).toMatchObject({ auth: "google_id_token", audience: "https://other" });
  expect(bodyOf({ ...draft, audience: " " })).toMatchObject({ auth: "google_id_token", audience: null });
  expect(bodyOf({ ...draft, auth: "" })).toMatchObject({ auth: null, audience: null });
  expect(bodyOf({ ...draft, kind: "container" })).toMatchObject({ auth: null, audience: null });
});

test("an emptied value is an empty value, not the one from before", () => {
  const draft = { ...emptyDraft(), env: [envRow("A", "", true), envRow("B", "")] };
  expect(bodyOf(draft).environment).toEqual({ A: MASK, B: "" });
});

test("a .env block becomes rows", () => {
  // covers: MGR-4
  expect(parseEnvBlock("# mine\nexport A=1\nB = 'x y'\nC=\"q=r\"\nD=\n")).toEqual([
    { name: "A", value: "1" },
    { name: "B", value: "x y" },
    { name: "C", value: "q=r" },
    { name: "D", value: "" },
  ]);
  expect(parseEnvBlock("JUST_A_NAME")).toBeNull();
  expect(parseEnvBlock("A=1\nnot a pair")).toBeNull();
});

test("half a number is sent as it is, for the daemon to name", () => {
  expect(bodyOf({ ...emptyDraft(), maxInFlight: "2x", callTimeout: "", pids: "12" })).toMatchObject({
    max_in_flight: "2x",
    call_timeout_ms: null,
    resource_limits: { pids: 12 },
  });
});

test.each(TEMPLATES)("the template $id fills in a form that could be saved", (template) => {
  // covers: MGR-62
  const draft = draftOfTemplate(template);
  expect(argvOfDraft(draft)).toEqual([template.command, ...template.args]);
  expect(draft.name).not.toBe("");
});
