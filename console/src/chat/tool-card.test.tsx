import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { render, screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import type { ReactNode } from "react";
import { afterEach, expect, test, vi } from "vitest";
import { toolCall } from "../test/chat";
import { CallRuns } from "./call-runs";
import { runsOf } from "./blocks";
import { ToolCard } from "./tool-card";
import type { ToolCall } from "./types";

afterEach(() => vi.unstubAllGlobals());

/** Each test has calls of its own: what was opened is remembered by call. */
let count = 0;
const fresh = (part: Partial<ToolCall> = {}) => {
  count += 1;
  return toolCall(count, part);
};
const page = (content: ReactNode) => (
  <QueryClientProvider client={new QueryClient({ defaultOptions: { queries: { retry: false } } })}>
    {content}
  </QueryClientProvider>
);
const card = (call: ToolCall) => page(<ToolCard conversation="c" call={call} />);
const group = (call: ToolCall) => screen.getByRole("group", { name: `Tool call ${call.n}: ${call.tool}` });
const button = (call: ToolCall, name: string) => within(group(call)).getByRole("button", { name });

test("a card says how the call stands, and turns while it runs", () => {
  // covers: MGR-64, MGR-65, MGR-66, MGR-67
  const call = fresh({ status: "running", outcome: null, result: null, duration_ms: null, recorded: false });
  const { rerender } = render(card(call));
  expect(within(group(call)).getByText("Running")).toBeTruthy();
  expect(within(group(call)).getByRole("progressbar")).toBeTruthy();
  rerender(card({ ...call, status: "done", duration_ms: 1234, result: { content: [] } }));
  expect(within(group(call)).getByText("Done")).toBeTruthy();
  expect(within(group(call)).getByText("1,234 ms")).toBeTruthy();
  expect(within(group(call)).queryByRole("progressbar")).toBeNull();
});

test("arguments and result open on request and stay open when the card is drawn anew", async () => {
  // covers: MGR-68, MGR-69
  const call = fresh({ arguments: { path: "/etc/hosts" } });
  const { rerender, unmount } = render(card(call));
  expect(screen.queryByRole("region")).toBeNull();
  await userEvent.click(button(call, "Arguments"));
  expect(within(group(call)).getByRole("region", { name: "Arguments" }).textContent).toContain('"/etc/hosts"');
  await userEvent.click(button(call, "Result"));
  expect(within(group(call)).getByRole("region", { name: "Result" }).textContent).toContain("file text");
  expect(button(call, "Result").getAttribute("aria-expanded")).toBe("true");
  rerender(card({ ...call }));
  expect(screen.getByRole("region", { name: "Result" })).toBeTruthy();
  unmount();
  render(card(call));
  expect(screen.getByRole("region", { name: "Arguments" })).toBeTruthy();
  await userEvent.click(button(call, "Arguments"));
  expect(screen.queryByRole("region", { name: "Arguments" })).toBeNull();
});

test("an error is open by itself, with its message and its stack", async () => {
  // covers: MGR-70, MGR-71
  const error = { message: "no such file", stack: "at read (fs.js:1)", code: -32000 };
  const call = fresh({ status: "error", outcome: "mcp_error", result: null, error });
  render(card(call));
  expect(within(group(call)).getByText("Error")).toBeTruthy();
  const region = within(group(call)).getByRole("region", { name: "Error details" });
  expect(region.textContent).toContain("no such file");
  expect(region.textContent).toContain("at read (fs.js:1)");
  expect(region.textContent).toContain("-32000");
  await userEvent.click(button(call, "Error details"));
  expect(screen.queryByRole("region", { name: "Error details" })).toBeNull();
});

test("images, resources and structured content are shown as what they are", async () => {
  const call = fresh({
    result: {
      content: [
        { type: "image", data: "aGk=", mimeType: "image/png" },
        { type: "resource", resource: { uri: "file:///a.txt", text: "inside" } },
      ],
      structuredContent: { rows: 3 },
    },
  });
  render(card(call));
  await userEvent.click(button(call, "Result"));
  expect(screen.getByRole("img").getAttribute("src")).toBe("data:image/png;base64,aGk=");
  const region = screen.getByRole("region", { name: "Result" });
  expect(region.textContent).toContain("file:///a.txt");
  expect(region.textContent).toContain("inside");
  expect(region.textContent).toContain('"rows": 3');
});

test("a long result comes cut with its size, and whole when it is wanted", async () => {
  const whole = "x".repeat(300_000);
  const call = fresh({
    truncated: true,
    result_bytes: 1_048_576,
    result: { content: [{ type: "text", text: "xxx" }] },
  });
  const asked: string[] = [];
  vi.stubGlobal("fetch", (url: string) => {
    asked.push(url);
    return Promise.resolve(Response.json({ ...call, result: { content: [{ type: "text", text: whole }] } }));
  });
  render(card(call));
  await userEvent.click(button(call, "Result"));
  expect(asked).toEqual([]);
  await userEvent.click(screen.getByRole("button", { name: "Show all (1.0 MB)" }));
  await vi.waitFor(() => expect(screen.getByRole("region", { name: "Result" }).textContent).toContain(whole));
  expect(asked).toEqual([`/api/v1/chat/conversations/c/calls/${call.call_id}`]);
  // In pieces, of which the browser lays out those in sight.
  expect(document.querySelectorAll(".text-piece").length).toBeGreaterThan(10);
});

test("a cut picture is not drawn; the whole is asked for", async () => {
  const image = (data: string) => ({ content: [{ type: "image" as const, data, mimeType: "image/png" }] });
  const call = fresh({ truncated: true, result_bytes: 100_000, result: image("Y3V0") });
  vi.stubGlobal("fetch", () => Promise.resolve(Response.json({ ...call, result: image("d2hvbGU=") })));
  render(card(call));
  await userEvent.click(button(call, "Result"));
  expect((await screen.findByRole("img")).getAttribute("src")).toBe("data:image/png;base64,d2hvbGU=");
});

test("many that went well share a frame that says how many, and can be closed", async () => {
  // covers: MGR-72
  const calls = [fresh(), fresh(), fresh(), fresh({ status: "error", error: { message: "no" } })];
  render(page(<CallRuns conversation="c" runs={runsOf(calls)} latest />));
  for (const call of calls) expect(group(call)).toBeTruthy();
  const frame = screen.getByRole("button", { name: "Used 3 tools" });
  await userEvent.click(frame);
  expect(frame.getAttribute("aria-expanded")).toBe("false");
  expect(screen.getAllByRole("group")).toHaveLength(1);
  expect(group(calls[3]!)).toBeTruthy();
});

test("once something else was asked, they begin closed", () => {
  const calls = [fresh(), fresh(), fresh()];
  render(page(<CallRuns conversation="c" runs={runsOf(calls)} latest={false} />));
  expect(screen.queryByRole("group")).toBeNull();
  expect(screen.getByRole("button", { name: "Used 3 tools" }).getAttribute("aria-expanded")).toBe("false");
});

const wire = (text: string) => ({ text, bytes: text.length, truncated: false, redacted: false });
const flightOf = (call: ToolCall, request: string) => ({
  call_id: call.call_id,
  stages: { queue_ms: 1, write_ms: 2, server_ms: 30, read_ms: 4 },
  request: wire(request),
  response: wire('{"content":[]}'),
  stderr: [{ seq: 1, at: "2026-01-01T00:00:00Z", stream: "stderr", line: "reading \u001b[31mnow" }],
  replayable: true,
});

test("the flight recorder shows what went over the wire, and replays it", async () => {
  const call = fresh();
  const flight = flightOf(call, '{"jsonrpc":"2.0","id":7,"method":"tools/call"}');
  vi.stubGlobal("fetch", (url: string, init: RequestInit) =>
    Promise.resolve(
      Response.json(
        url.endsWith("/replay") && init.method === "POST" ? { call_id: "y", result: { again: true } } : flight,
      ),
    ),
  );
  render(card(call));
  await userEvent.click(button(call, "Flight recorder"));
  const region = screen.getByRole("region", { name: "Flight recorder" });
  await within(region).findByText("Server");
  expect(region.textContent).toContain(flight.request.text);
  expect(region.textContent).toContain(flight.response.text);
  expect(region.textContent).toContain("reading now");
  for (const time of ["1.0 ms", "2.0 ms", "30 ms", "4.0 ms"]) expect(within(region).getByText(time)).toBeTruthy();
  await userEvent.click(within(region).getByRole("button", { name: "Replay" }));
  expect((await screen.findByRole("region", { name: "Result of the replay" })).textContent).toContain("again");
});

test("a replay can be given other arguments, once they are an object", async () => {
  const call = fresh();
  const flight = flightOf(call, '{"id":7,"method":"tools/call","params":{"name":"echo","arguments":{"a":1}}}');
  const sent: unknown[] = [];
  vi.stubGlobal("fetch", (url: string, init: RequestInit) => {
    if (!url.endsWith("/replay")) return Promise.resolve(Response.json(flight));
    sent.push(init.body);
    return Promise.resolve(Response.json({ call_id: "y", result: {} }));
  });
  render(card(call));
  await userEvent.click(button(call, "Flight recorder"));
  const edit = await screen.findByRole("button", { name: "Edit arguments" });
  await userEvent.click(edit);
  expect(edit.getAttribute("aria-expanded")).toBe("true");
  const box = screen.getByRole<HTMLTextAreaElement>("textbox", { name: "Arguments as JSON" });
  expect(JSON.parse(box.value)).toEqual({ a: 1 });
  const again = screen.getByRole<HTMLButtonElement>("button", { name: "Replay" });
  await userEvent.clear(box);
  await userEvent.type(box, "[[1]");
  expect(box.getAttribute("aria-invalid")).toBe("true");
  expect(screen.getByText("It must be a JSON object")).toBeTruthy();
  expect(again.disabled).toBe(true);
  await userEvent.clear(box);
  await userEvent.type(box, '{{"a":2}');
  await userEvent.click(again);
  await userEvent.click(edit);
  await userEvent.click(again);
  expect(sent).toEqual(['{"params":{"name":"echo","arguments":{"a":2}}}', null]);
});
