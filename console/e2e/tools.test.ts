// The tools of a server: finding them, reading their schemas, running them.
import { readFileSync } from "node:fs";
import type { Locator, Page } from "playwright-core";
import { EVERYTHING } from "./support/places";
import { named } from "./support/screen";
import { expect, test, until } from "./support/test";

async function openRunner(page: Page, tool: string): Promise<Locator> {
  await page.getByRole("button", named(`Run ${tool}`)).click();
  const dialog = page.getByRole("dialog", named(`Run ${tool}`));
  await dialog.waitFor();
  return dialog;
}

const run = (dialog: Locator) => dialog.getByRole("button", named("Run")).click();
const result = (dialog: Locator) => dialog.getByRole("region", named("Result"));

test("tools are counted, searched in name and description, and show their schema", async ({ daemon, open }) => {
  // covers: MGR-30, MGR-31, MGR-33..38
  await daemon.register({ name: "every", command: EVERYTHING, args: [] });
  const { tools } = await daemon.ask("GET", "/mcp/servers/every/tools");
  const page = await open("/servers/every/tools");
  const list = page.getByRole("list", named("Tools"));
  const count = (words: string) =>
    page
      .getByRole("status")
      .filter({ hasText: new RegExp(`^${words}$`) })
      .waitFor();
  await count(`${tools.length} of ${tools.length} tools`);
  for (const tool of tools) {
    await list.getByText(tool.name, { exact: true }).first().waitFor();
    await list.getByText(tool.description, { exact: true }).first().waitFor();
  }
  const search = page.getByRole("searchbox", named("Search tools"));
  await search.fill("echo");
  const found = tools.filter((tool: { name: string; title?: string; description: string }) =>
    /echo/i.test(`${tool.name} ${tool.title ?? ""} ${tool.description}`),
  );
  await count(`${found.length} of ${tools.length} tools`);
  await search.fill("SUM of two numbers");
  await count(`1 of ${tools.length} tools`);
  await search.fill("no tool has this");
  await count(`0 of ${tools.length} tools`);
  await search.fill("");

  const show = page.getByRole("button", named("Show schema of echo"));
  await until(() => show.getAttribute("aria-expanded")).toBe("false");
  await show.click();
  const schema = page.getByRole("region", named("Input schema of echo"));
  expect(JSON.parse((await schema.locator("pre").textContent()) ?? "")).toEqual(
    tools.find((tool: { name: string }) => tool.name === "echo").inputSchema,
  );
  await show.click();
  await schema.waitFor({ state: "detached" });
});

test("a real tool is run from its form", async ({ daemon, open }) => {
  await daemon.register({ name: "every", command: EVERYTHING, args: [] });
  const page = await open("/servers/every/tools");
  const dialog = await openRunner(page, "echo");
  await run(dialog);
  await dialog.getByRole("alert").waitFor();
  const message = dialog.getByRole("textbox", named("message"));
  await until(() => message.getAttribute("aria-invalid")).toBe("true");
  await message.fill("こんにちは、世界");
  await run(dialog);
  await result(dialog).getByText("Echo: こんにちは、世界").first().waitFor();
  await result(dialog)
    .getByText(/\d+(\.\d+)? ms/)
    .first()
    .waitFor();
  await page.keyboard.press("Escape");

  const sum = await openRunner(page, "get-sum");
  await sum.getByLabel("a", { exact: true }).fill("40");
  await sum.getByLabel("b", { exact: true }).fill("2");
  await run(sum);
  await result(sum).getByText(/42/).first().waitFor();
});

test("form, JSON and request are the same arguments", async ({ daemon, open }) => {
  await daemon.register({ name: "every", command: EVERYTHING, args: [] });
  const page = await open("/servers/every/tools");
  const dialog = await openRunner(page, "echo");
  await dialog.getByRole("textbox", named("message")).fill("one");
  await dialog.getByRole("tab", named("JSON")).click();
  const json = dialog.getByRole("textbox", named("Arguments as JSON"));
  expect(JSON.parse(await json.inputValue())).toEqual({ message: "one" });
  await json.fill('{"message": "two"}');
  await dialog.getByRole("tab", named("Request")).click();
  await dialog.getByText('"tools/call"').waitFor();
  await dialog.getByText('"two"').waitFor();
  await dialog.getByRole("tab", named("Form")).click();
  await until(() => dialog.getByRole("textbox", named("message")).inputValue()).toBe("two");
  await dialog.getByRole("tab", named("JSON")).click();
  await json.fill('{"message": ');
  await run(dialog);
  await until(() => dialog.getByRole("alert").allTextContents()).toEqual([expect.stringMatching(/not JSON.*line 1/)]);
  await until(() => result(dialog).count()).toBe(0);
  await json.fill('{"message": "three"}');
  await dialog.getByRole("textbox", named("Arguments as JSON")).press("Control+Enter");
  await result(dialog).getByText("Echo: three").first().waitFor();
});

test("an optional field that was not touched is not sent", async ({ daemon, open }) => {
  await daemon.register({ name: "every", command: EVERYTHING, args: [] });
  const page = await open("/servers/every/tools");
  const dialog = await openRunner(page, "trigger-long-running-operation");
  const sent = page.waitForRequest((request) => request.url().endsWith("/call"));
  await dialog.getByLabel("duration", { exact: true }).fill("1");
  await run(dialog);
  expect((await sent).postDataJSON().params.arguments).toEqual({ duration: 1 });
  await result(dialog)
    .getByText(/completed/i)
    .first()
    .waitFor();
});

test("an error of the tool, of the protocol and of the server each look like one", async ({ daemon, open }) => {
  await daemon.wayward("naughty");
  const page = await open("/servers/naughty/tools");
  const failed = await openRunner(page, "fail");
  await run(failed);
  await result(failed).getByText("The tool reported an error").waitFor();
  await result(failed)
    .getByText(/at wayward \(tools\.rs:1:1\)/)
    .waitFor();
  await page.keyboard.press("Escape");

  const refused = await openRunner(page, "rpc_error");
  await run(refused);
  await result(refused)
    .getByRole("alert")
    .getByText(/as ordered/)
    .first()
    .waitFor();
  await page.keyboard.press("Escape");

  const structured = await openRunner(page, "structured");
  await run(structured);
  await result(structured).getByText("Structured content").waitFor();
  await result(structured)
    .getByText(/"answer"/)
    .waitFor();
});

test("a run that takes too long is cancelled, and the server is told", async ({ daemon, open }) => {
  await daemon.wayward("slow", ["--log-order", `${daemon.home}/order`]);
  const page = await open("/servers/slow/tools");
  const dialog = await openRunner(page, "hang");
  await run(dialog);
  await dialog.getByRole("button", named("Cancel run")).click();
  await result(dialog).getByText("Cancelled").waitFor();
  await until(() => readFileSync(`${daemon.home}/order`, "utf8")).toContain("cancelled tools/call hang");
  await until(async () => (await daemon.ask("GET", "/activity")).calls[0]?.outcome).toBe("cancelled");
});

test("runs of this session can be done again", async ({ daemon, open }) => {
  await daemon.wayward("history");
  const page = await open("/servers/history/tools");
  const dialog = await openRunner(page, "echo");
  await dialog.getByRole("tab", named("JSON")).click();
  const json = dialog.getByRole("textbox", named("Arguments as JSON"));
  for (const text of ["first", "second"]) {
    await json.fill(JSON.stringify({ text }));
    await run(dialog);
    await result(dialog).getByText(new RegExp(text)).first().waitFor();
  }
  await dialog.getByText("This session").click();
  await dialog.getByRole("listitem").filter({ hasText: "first" }).getByRole("button", named("Run again")).click();
  await result(dialog).getByText(/first/).first().waitFor();
});

test("tools that cannot be loaded say why and can be tried again", async ({ daemon, open }) => {
  // covers: MGR-32, MGR-40
  await daemon.wayward("flaky");
  const page = await open("/");
  let refuse = true;
  let release = () => {};
  await page.route("**/api/v1/**/tools", async (route) => {
    if (!refuse) return route.continue();
    await new Promise<void>((resolve) => (release = resolve));
    await route.fulfill({
      status: 504,
      json: { error: { kind: "timeout", message: "No answer in time", hint: "try again", trace_id: "0" } },
    });
  });
  await page.goto("/servers/flaky/tools");
  await page.getByRole("main").getByText("Loading tools…").first().waitFor();
  const alert = page.getByRole("alert", named("Could not load tools"));
  await until(async () => {
    release();
    return alert.count();
  }).toBe(1);
  await until(() => alert.textContent()).toContain("No answer in time");
  refuse = false;
  await alert.getByRole("button", named("Retry")).click();
  await page.getByRole("list", named("Tools")).getByText("echo", { exact: true }).waitFor();
  await alert.waitFor({ state: "detached" });
});

test("a server without tools says so", async ({ daemon, open }) => {
  await daemon.wayward("bare", ["--tools", "0"]);
  const page = await open("/servers/bare/tools");
  await page.getByText("This server offers no tools").waitFor();
});

test("the result is on screen after Run, and sizes are the same everywhere", async ({ daemon, open }) => {
  await daemon.register({ name: "every", command: EVERYTHING, args: [] });
  const page = await open("/servers/every/tools", { viewport: { width: 900, height: 420 } });
  const dialog = await openRunner(page, "echo");
  await dialog.getByRole("textbox", named("message")).fill("日本語の長い文 ".repeat(40));
  await run(dialog);
  await result(dialog).getByText("Echo: 日本語の長い文").first().waitFor();
  await until(async () => {
    const box = await result(dialog).getByRole("heading", named("Result")).boundingBox();
    return box !== null && box.y >= 0 && box.y + box.height <= 420;
  }).toBe(true);

  await page.goto("/activity");
  await page.getByRole("button", { name: /^Details of echo/ }).click();
  const recorder = page.getByRole("region", named("Flight recorder"));
  await recorder
    .getByText("Response", { exact: true })
    .or(recorder.getByText("Answer", { exact: true }))
    .waitFor();
  const { calls } = await daemon.ask("GET", "/activity?limit=1");
  const flight = await daemon.ask("GET", `/activity/${calls[0].call_id}`);
  for (const { bytes } of [flight.request, flight.response]) {
    const size = bytes >= 1000 ? `${(bytes / 1000).toFixed(1)} kB` : `${bytes} B`;
    // Once among the facts of the call, once beside the message.
    await until(() => page.getByRole("table").getByText(size, { exact: true }).count()).toBe(2);
  }
});
