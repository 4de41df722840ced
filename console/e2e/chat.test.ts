// Turns of a chat: a model that uses real tools, and a card for each call.
import { ask, card, finished, log, message, test, unfold } from "./support/chat";
import { compose } from "./support/ime";
import { gate } from "./support/model";
import { EVERYTHING } from "./support/places";
import { named } from "./support/screen";
import { expect, until } from "./support/test";

const every = { name: "every", command: EVERYTHING, args: [] as string[] };

test("text streams in as Markdown, HTML in it stays text, and only the finished text is announced", async ({
  daemon,
  model,
  open,
}) => {
  const more = gate();
  model.says({
    text: ["# Hello\n\nThis is **bold", "** &amp; <img src=x onerror=alert(1)>\n\n[a link](https://example.org/)"],
    hold: more.opened,
  });
  const page = await open("/chat");
  await ask(page, "hello there");
  await log(page).getByText("This is").waitFor();
  const announced = page.getByRole("status", named("Finished answers"));
  await until(() => announced.textContent()).toBe("");
  await until(() => page.getByRole("button", named("Stop")).isVisible()).toBe(true);
  more.open();
  await finished(page);
  await log(page).getByRole("heading", named("Hello")).waitFor();
  await until(() => log(page).locator("strong").textContent()).toBe("bold");
  await log(page).getByText("& <img src=x onerror=alert(1)>").waitFor();
  await until(() => log(page).locator("img").count()).toBe(0);
  const link = log(page).getByRole("link", named("a link"));
  expect([await link.getAttribute("rel"), await link.getAttribute("target")]).toEqual([
    "noopener noreferrer",
    "_blank",
  ]);
  await until(() => announced.textContent()).toContain("a link");
  // The conversation has an address and a title, and the focus is where the next message goes.
  expect(new URL(page.url()).pathname).toMatch(/^\/chat\/[0-9a-f-]{36}$/);
  await page.getByRole("heading", { level: 1, ...named("hello there") }).waitFor();
  await until(() => page.evaluate(() => document.activeElement?.getAttribute("aria-label"))).toBe("Message");
  expect(model.requests[0]!.model).toBe("test-model");
  expect((await daemon.ask("GET", "/chat/conversations")).conversations).toHaveLength(1);
});

test("a chain of two tools is shown in time order, down to the wire", async ({ daemon, model, open }) => {
  // covers: MGR-64..70, MGR-73
  await daemon.register(every);
  await daemon.wayward("wild");
  const slow = gate();
  model.says(
    { text: ["Let me add."], calls: [{ name: "every__get-sum", arguments: { a: 2, b: 40 } }] },
    { calls: [{ name: "wild__stderr", arguments: { text: "written meanwhile", times: 1 } }], hold: slow.opened },
    { text: ["The sum is 42."] },
  );
  const page = await open("/chat");
  await page.getByRole("button", { name: /^\d+ tools · about [\d,]+ tokens$/ }).waitFor();
  await ask(page, "what is 2 + 40?");
  const first = card(page, 1, "get-sum");
  await first.getByText("Done", { exact: true }).waitFor();
  await until(() => first.getByRole("progressbar").count()).toBe(0);
  const given = await unfold(first, "Arguments");
  expect(JSON.parse((await given.locator("pre").textContent())!)).toEqual({ a: 2, b: 40 });
  const got = await unfold(first, "Result");
  await got.getByText("42").first().waitFor();
  slow.open();
  await finished(page);
  await log(page).getByText("The sum is 42.").waitFor();
  // What was opened is still open.
  await until(() => got.isVisible()).toBe(true);
  const order = await log(page).innerText();
  const places = ["what is 2 + 40?", "Let me add.", "get-sum", "stderr", "The sum is 42."].map((text) =>
    order.indexOf(text),
  );
  expect(places.every((at, index) => at >= 0 && (index === 0 || at > places[index - 1]!))).toBe(true);

  const flight = await unfold(card(page, 2, "stderr"), "Flight recorder");
  await flight.getByText(/"method":"tools\/call"/).waitFor();
  for (const stage of ["Waiting", "Sending", "Server", "Reading"])
    await flight.getByText(stage, { exact: true }).waitFor();
  await flight.getByText(/written meanwhile$/).waitFor();
  await flight.getByRole("button", named("Replay")).click();
  await flight.getByRole("region", named("Result of the replay")).waitFor();
  await flight.getByRole("button", named("Edit arguments")).click();
  await flight.getByRole("textbox", named("Arguments as JSON")).fill('{"text": "said otherwise", "times": 2}');
  await flight.getByRole("button", named("Replay")).click();
  const newest = async () => (await daemon.ask("GET", "/activity?limit=1")).calls[0].call_id;
  await until(async () => (await daemon.ask("GET", `/activity/${await newest()}`)).request.text).toContain(
    '"arguments":{"text": "said otherwise", "times": 2}',
  );
  // The model was told what the tools gave.
  expect(JSON.stringify(model.requests.at(-1)!.messages)).toContain("42");

  await page.goto("/activity");
  const call = page.getByRole("row").filter({ hasText: "get-sum" });
  await call.getByRole("cell", named("Chat")).waitFor();
  await call.getByRole("button", { name: /^Details of get-sum/ }).click();
  await page
    .getByRole("region", named("Flight recorder"))
    .getByText(/"get-sum"/)
    .waitFor();
});

test("a tool that runs says so, with a progress bar", async ({ daemon, model, open }) => {
  await daemon.wayward("wild");
  model.says({ calls: [{ name: "wild__hang" }] });
  const page = await open("/chat");
  await ask(page, "hang");
  const hanging = card(page, 1, "hang");
  await hanging.getByText("Running", { exact: true }).waitFor();
  await hanging.getByRole("progressbar").waitFor();
  await page.getByRole("button", named("Stop")).click();
  await finished(page);
  await hanging.getByText("Cancelled", { exact: true }).waitFor();
  await log(page).getByText("Stopped", { exact: true }).waitFor();
  await until(() => hanging.getByRole("progressbar").count()).toBe(0);
  // The focus is not lost with the button.
  await until(() => page.evaluate(() => document.activeElement?.getAttribute("aria-label"))).toBe("Message");
  model.says({ text: ["On we go."] });
  await log(page).getByRole("button", named("Continue")).click();
  await log(page).getByText("On we go.").waitFor();
});

test("a tool's error is open on its card with message and stack, and goes back to the model", async ({
  daemon,
  model,
  open,
}) => {
  // covers: MGR-71, MGR-72
  await daemon.wayward("wild");
  model.says(
    {
      calls: [{ name: "wild__fail" }, { name: "wild__rpc_error", arguments: { code: -32050, message: "out of luck" } }],
    },
    { text: ["Both failed."] },
  );
  const page = await open("/chat");
  await ask(page, "break something");
  await log(page).getByText("Both failed.").waitFor();
  const failed = card(page, 1, "fail");
  await failed.getByText("Error", { exact: true }).waitFor();
  const details = failed.getByRole("region", named("Error details"));
  await details.getByText(/at /).first().waitFor();
  const refused = card(page, 2, "rpc_error").getByRole("region", named("Error details"));
  await refused
    .getByText(/out of luck/)
    .first()
    .waitFor();
  await refused
    .getByText(/-32050/)
    .first()
    .waitFor();
  expect(JSON.stringify(model.requests.at(-1)!.messages)).toContain("out of luck");
  await failed.getByRole("button", named("Error details")).click();
  await details.waitFor({ state: "detached" });
});

test("at ten steps it stops, says so, and goes on or answers when told to", async ({ daemon, model, open }) => {
  // covers: MGR-74
  await daemon.wayward("wild");
  model.otherwise = { calls: [{ name: "wild__pid" }] };
  const page = await open("/chat");
  await ask(page, "never stop");
  const alert = log(page).getByRole("alert", named("Tool call limit reached (10 of 10 steps)"));
  await alert.waitFor();
  await card(page, 10, "pid").getByText("Done", { exact: true }).waitFor();
  await until(() => log(page).getByRole("group").count()).toBe(10);
  const frame = log(page).getByRole("button", named("Used 10 tools"));
  await frame.click();
  await until(() => log(page).getByRole("group").count()).toBe(0);
  await frame.click();
  await alert.getByRole("button", named("Continue")).click();
  await card(page, 20, "pid").getByText("Done", { exact: true }).waitFor();
  await alert.getByRole("button", named("Answer now")).waitFor();
  model.otherwise = { text: ["I know enough."] };
  await alert.getByRole("button", named("Answer now")).click();
  await log(page).getByText("I know enough.").waitFor();
  await finished(page);
  await until(() => log(page).getByRole("alert").count()).toBe(0);
});

test("a reload and a second tab show the same turn, live", async ({ daemon, model, open }) => {
  await daemon.wayward("wild");
  const more = gate();
  model.says({ calls: [{ name: "wild__pid" }] }, { text: ["The first half", " and the second."], hold: more.opened });
  const page = await open("/chat");
  await ask(page, "tell me slowly");
  await log(page).getByText("The first half").waitFor();
  await page.reload();
  await log(page).getByText("The first half").waitFor();
  await card(page, 1, "pid").waitFor();
  const second = await open(new URL(page.url()).pathname);
  await log(second).getByText("The first half").waitFor();
  await second.getByRole("button", named("Stop")).waitFor();
  more.open();
  for (const tab of [page, second]) {
    await log(tab).getByText("The first half and the second.").waitFor();
    await finished(tab);
    await until(() => log(tab).getByText("tell me slowly", { exact: true }).count()).toBe(1);
    await until(() => log(tab).getByRole("group").count()).toBe(1);
  }
  // What one tab asks the other shows.
  model.says({ text: ["Seen by both."] });
  await ask(second, "and now?");
  await log(page).getByText("Seen by both.").waitFor();
});

test("a turn that the daemon did not live to end is said to be so, and can go on", async ({ daemon, model, open }) => {
  const never = gate();
  model.says({ text: ["It was a dark", " and stormy night."], hold: never.opened });
  const page = await open("/chat", { forgive: /net::ERR_|Failed to load resource/ });
  await ask(page, "tell me a story");
  await log(page).getByText("It was a dark").waitFor();
  await daemon.kill();
  never.open();
  await page.getByText("Cofer is not answering").waitFor();
  await daemon.run();
  await log(page).getByText("The daemon ended before the answer did.").waitFor();
  model.says({ text: ["The end."] });
  await log(page).getByRole("button", named("Continue")).click();
  await log(page).getByText("The end.").waitFor();
});

test("Stop in the middle of the text keeps what was said", async ({ model, open }) => {
  const never = gate();
  model.says({ text: ["As far as this", " and no further."], hold: never.opened });
  const page = await open("/chat");
  await ask(page, "a long story");
  await log(page).getByText("As far as this").waitFor();
  await page.getByRole("button", named("Stop")).click();
  await log(page).getByText("Stopped", { exact: true }).waitFor();
  never.open();
  await finished(page);
  expect(await log(page).innerText()).not.toContain("no further");
  await page.reload();
  await log(page).getByText("As far as this").waitFor();
});

test("Enter sends, Shift+Enter is a line, and Enter that ends a Japanese composition is neither", async ({
  model,
  open,
}) => {
  const page = await open("/chat", { lang: "ja" });
  const field = page.getByRole("textbox", named("メッセージ"));
  await field.focus();
  await compose(page, "東京の");
  await page.keyboard.press("Shift+Enter");
  await compose(page, "天気");
  await until(() => field.inputValue()).toBe("東京の\n天気");
  expect(model.requests).toHaveLength(0);
  await page.keyboard.press("Enter");
  await page.getByRole("log", named("会話")).getByText("That is all.").waitFor();
  expect(model.requests[0]!.messages.at(-1).content).toContain("東京の\n天気");
  await until(() => field.inputValue()).toBe("");
});

test("a result of one mebibyte does not hold up the page, and is there whole when wanted", async ({
  daemon,
  model,
  open,
}) => {
  await daemon.wayward("wild");
  model.says({ calls: [{ name: "wild__big", arguments: { n: 1_048_576 } }] });
  const page = await open("/chat");
  await ask(page, "something big");
  await log(page).getByText("That is all.").waitFor();
  const big = card(page, 1, "big");
  const result = await unfold(big, "Result");
  await result.getByRole("button", named("Show all (1.0 MB)")).click();
  await until(() => result.locator("pre").evaluate((element) => element.textContent!.length)).toBe(1_048_576);
  // The longest that the page did not answer while it was drawn, told because machines differ.
  const pause = await page.evaluate(async () => {
    const begun = performance.now();
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
    return performance.now() - begun;
  });
  console.info(`with a result of 1 MiB on the page the next frame comes after ${Math.round(pause)} ms`);
  await message(page).fill("the page still answers");
  await until(() => message(page).inputValue()).toBe("the page still answers");
});

test("a picture is shown as a picture", async ({ daemon, model, open }) => {
  await daemon.register(every);
  model.says({ calls: [{ name: "every__get-tiny-image" }] });
  const page = await open("/chat");
  await ask(page, "show me");
  await log(page).getByText("That is all.").waitFor();
  const result = await unfold(card(page, 1, "get-tiny-image"), "Result");
  const image = result.getByRole("img");
  await until(() => image.evaluate((element) => (element as HTMLImageElement).naturalWidth)).toBeGreaterThan(0);
});

test("what a model's provider refuses is told with what to do, and can be tried again", async ({ model, open }) => {
  model.says({ status: 404, error: { message: "The model `test-model` does not exist", code: "model_not_found" } });
  const page = await open("/chat");
  await ask(page, "hello?");
  const alert = log(page).getByRole("alert", named("The provider does not have this model"));
  await alert.getByText(/does not exist/).waitFor();
  await until(() => alert.getByRole("link", named("Open Settings")).getAttribute("href")).toBe("/settings");
  model.says({ text: ["Here I am."] });
  await alert.getByRole("button", named("Retry")).click();
  await log(page).getByText("Here I am.").waitFor();
  // What was asked was not asked twice.
  await until(() => log(page).getByText("hello?", { exact: true }).count()).toBe(1);
});
