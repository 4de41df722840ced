import { QueryClientProvider } from "@tanstack/react-query";
import { fireEvent, render, screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { queryClient } from "../../api/queries";
import type { Validation } from "../../api/schema";
import { serverView } from "../../test/server";
import AddDialog from "./add-dialog";
import EditDialog from "./edit-dialog";

let sent: { method: string; url: string; body: Record<string, unknown> }[];
let validation: Validation;
let refusal: Response | null;

beforeEach(() => {
  sent = [];
  validation = { errors: [], warnings: [] };
  refusal = null;
  queryClient.clear();
  vi.stubGlobal("fetch", async (url: string, init: RequestInit = {}) => {
    if (url.endsWith("/mcp/validate")) return Response.json(validation);
    if (init.method === "POST" || init.method === "PATCH") {
      sent.push({ method: init.method, url, body: JSON.parse(String(init.body)) as Record<string, unknown> });
      return refusal ?? Response.json(serverView({ name: "new" }), { status: 201 });
    }
    return Response.json({ servers: [] });
  });
});
afterEach(() => vi.unstubAllGlobals());

function add(onClose = vi.fn()) {
  render(
    <QueryClientProvider client={queryClient}>
      <AddDialog onClose={onClose} />
    </QueryClientProvider>,
  );
  return onClose;
}

const message = (field: HTMLElement) =>
  document.getElementById(field.getAttribute("aria-errormessage") ?? "")?.textContent;

test("an empty form says what is missing, saves nothing and brings the focus there", async () => {
  // covers: MGR-5
  const user = userEvent.setup();
  add();
  await user.click(screen.getByRole("button", { name: "Save" }));
  const name = screen.getByRole("textbox", { name: "Name" });
  expect(message(name)).toBe("Name is required");
  expect(message(screen.getByRole("textbox", { name: "Command" }))).toBe("Command is required");
  await waitFor(() => expect(document.activeElement).toBe(name));
  expect(sent).toEqual([]);
});

test("what was typed is what is saved", async () => {
  // covers: MGR-1, MGR-2, MGR-3, MGR-4
  const user = userEvent.setup();
  const closed = add();
  await user.type(screen.getByRole("textbox", { name: "Name" }), "Filesystem Server");
  await user.type(screen.getByRole("textbox", { name: "Command" }), "npx");
  await user.type(screen.getByRole("textbox", { name: "Arguments (one per line)" }), "-y{Enter}a b");
  await user.click(screen.getByRole("button", { name: "Add variable" }));
  await user.type(screen.getByLabelText("Variable 1 name"), "KEY");
  await user.type(screen.getByLabelText("Variable 1 value"), "v=1");
  await user.click(screen.getByRole("checkbox", { name: "Enabled" }));
  await user.click(screen.getByRole("button", { name: "Save" }));
  await waitFor(() => expect(closed).toHaveBeenCalled());
  expect(sent).toHaveLength(1);
  expect(sent[0]!.body).toMatchObject({
    name: "Filesystem Server",
    command: "npx",
    args: ["-y", "a b"],
    environment: { KEY: "v=1" },
    enabled: false,
    include_resources: false,
  });
  expect(sent[0]!.body).not.toHaveProperty("image");
});

test("a command that is not there is said to be so, and can be saved all the same", async () => {
  // covers: MGR-7
  const user = userEvent.setup();
  validation = {
    errors: [{ field: "command", message: "Command “nope” was not found on PATH", blocking: false }],
    warnings: [],
  };
  const closed = add();
  await user.type(screen.getByRole("textbox", { name: "Name" }), "x");
  await user.type(screen.getByRole("textbox", { name: "Command" }), "nope");
  await user.tab();
  await waitFor(() =>
    expect(message(screen.getByRole("textbox", { name: "Command" }))).toBe("Command “nope” was not found on PATH"),
  );
  await user.click(screen.getByRole("button", { name: "Save" }));
  await waitFor(() => expect(closed).toHaveBeenCalled());
});

test("a name that is taken is told at the name", async () => {
  // covers: MGR-6
  const user = userEvent.setup();
  refusal = Response.json({ error: { kind: "conflict", message: "taken", trace_id: "t" } }, { status: 409 });
  const closed = add();
  await user.type(screen.getByRole("textbox", { name: "Name" }), "fs");
  await user.type(screen.getByRole("textbox", { name: "Command" }), "npx");
  await user.click(screen.getByRole("button", { name: "Save" }));
  await waitFor(() =>
    expect(message(screen.getByRole("textbox", { name: "Name" }))).toBe("A server named “fs” already exists"),
  );
  expect(closed).not.toHaveBeenCalled();
});

test("secrets and a growing context are warned about", async () => {
  // covers: MGR-8, MGR-53, MGR-54
  const user = userEvent.setup();
  validation = {
    errors: [],
    warnings: [{ field: "environment.API_KEY", message: "`API_KEY` looks like a secret: it is stored in plain text" }],
  };
  add();
  expect((await screen.findByRole("note", { name: "Plain-text secret warning" })).textContent).toContain("API_KEY");
  expect(screen.queryByRole("note", { name: "Context size warning" })).toBeNull();
  await user.click(screen.getByRole("checkbox", { name: "Include resources as tools" }));
  expect(screen.getByRole("note", { name: "Context size warning" })).toBeTruthy();
  expect(screen.getByText("Recommended only for servers with few resources.")).toBeTruthy();
});

test("Enter that ends a composition does not save", () => {
  add();
  const name = screen.getByRole("textbox", { name: "Name" });
  const composing = !fireEvent.keyDown(name, { key: "Enter", keyCode: 229, isComposing: true });
  const plain = !fireEvent.keyDown(name, { key: "Enter", keyCode: 13 });
  expect([composing, plain]).toEqual([true, false]);
});

test("editing keeps secrets that were not touched and asks for a change of one server", async () => {
  const user = userEvent.setup();
  const server = serverView({ name: "fs", environment: { TOKEN: "********" } });
  render(
    <QueryClientProvider client={queryClient}>
      <EditDialog server={server} onClose={() => {}} />
    </QueryClientProvider>,
  );
  await user.clear(screen.getByRole("textbox", { name: "Command" }));
  await user.type(screen.getByRole("textbox", { name: "Command" }), "node");
  await user.click(screen.getByRole("button", { name: "Save" }));
  await waitFor(() => expect(sent).toHaveLength(1));
  expect(sent[0]).toMatchObject({
    method: "PATCH",
    url: "/api/v1/mcp/servers/fs",
    body: { command: "node", environment: { TOKEN: "********" }, image: null },
  });
});

test("an audience is asked for where requests are signed, and the URL's origin is its default", async () => {
  const user = userEvent.setup();
  const closed = add();
  await user.type(screen.getByRole("textbox", { name: "Name" }), "reports");
  await user.click(screen.getByRole("radio", { name: "Remote URL" }));
  await user.type(screen.getByRole("textbox", { name: "URL" }), "https://reports.example.com/mcp");
  expect(screen.queryByRole("textbox", { name: "Audience" })).toBeNull();
  await user.selectOptions(screen.getByRole("combobox", { name: "Authentication" }), "Google ID token");
  const audience = screen.getByRole<HTMLInputElement>("textbox", { name: "Audience" });
  expect(audience.placeholder).toBe("https://reports.example.com");
  await user.type(audience, "https://other.example.com");
  await user.click(screen.getByRole("button", { name: "Save" }));
  await waitFor(() => expect(closed).toHaveBeenCalled());
  expect(sent[0]!.body).toMatchObject({
    url: "https://reports.example.com/mcp",
    auth: "google_id_token",
    audience: "https://other.example.com",
  });
});

test("a template fills in the form and runs nothing", async () => {
  const user = userEvent.setup();
  add();
  await user.click(screen.getByRole("tab", { name: "Templates" }));
  await user.click(screen.getByRole("button", { name: /^filesystem/ }));
  expect(screen.getByRole<HTMLInputElement>("textbox", { name: "Command" }).value).toBe("npx");
  expect(sent).toEqual([]);
});

const switchedOff = () => serverView({ name: "broken", enabled: false, status: "error", command: "/no/such/program" });

function edit(server = switchedOff(), onClose = vi.fn()) {
  render(
    <QueryClientProvider client={queryClient}>
      <EditDialog server={server} onClose={onClose} />
    </QueryClientProvider>,
  );
  return onClose;
}

test("a server that a failed start switched off is saved and started, by the button and by Ctrl+Enter", async () => {
  // covers: MGR-S3
  const user = userEvent.setup();
  const closed = edit();
  const command = screen.getByRole("textbox", { name: "Command" });
  expect(screen.getByRole<HTMLInputElement>("checkbox", { name: "Enabled" }).checked).toBe(false);
  await user.clear(command);
  await user.type(command, "node{Control>}{Enter}{/Control}");
  await waitFor(() => expect(closed).toHaveBeenCalledTimes(1));
  await user.click(screen.getByRole("button", { name: "Save and start" }));
  await waitFor(() => expect(closed).toHaveBeenCalledTimes(2));
  expect(sent.map(({ body }) => [body.command, body.enabled])).toEqual([
    ["node", true],
    ["node", true],
  ]);
});

test("such a server is also saved without a start", async () => {
  const user = userEvent.setup();
  const closed = edit();
  await user.click(screen.getByRole("button", { name: "Save" }));
  await waitFor(() => expect(closed).toHaveBeenCalled());
  expect(sent[0]!.body.enabled).toBe(false);
});

test("a server that a person switched off, or that runs, has the one button Save", async () => {
  const user = userEvent.setup();
  const closed = edit(serverView({ name: "off", enabled: false, status: "stopped" }));
  expect(screen.queryByRole("button", { name: "Save and start" })).toBeNull();
  await user.click(screen.getByRole("button", { name: "Save" }));
  await waitFor(() => expect(closed).toHaveBeenCalled());
  expect(sent[0]!.body.enabled).toBe(false);
});
