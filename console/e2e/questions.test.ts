// What a server asks while a chat calls one of its tools: on the card, answered by the person.
import { findings } from "./support/axe";
import { ask, card, finished, log, test, unfold } from "./support/chat";
import { EXEMPLARY } from "./support/places";
import { fits, named } from "./support/screen";
import { expect, until } from "./support/test";

const asker = { name: "asker", command: EXEMPLARY, args: [] as string[] };

test("a server's form is filled in on the card, also after a reload", async ({ daemon, model, open }) => {
  await daemon.register(asker);
  model.says({ calls: [{ name: "asker__test_elicitation", arguments: { message: "Who are you?" } }] });
  const page = await open("/chat", { theme: "dark", viewport: { width: 375, height: 760 }, touch: true });
  await ask(page, "introduce me");
  const call = card(page, 1, "test_elicitation");
  const question = call.getByRole("region", named("Question from asker"));
  await question.getByText("Who are you?").waitFor();
  await call.getByText("Running", { exact: true }).waitFor();
  expect(await findings(page)).toEqual([]);
  await fits(page);
  await page.reload();
  const field = question.getByRole("textbox", named("response"));
  await question.getByRole("button", named("Answer")).click();
  await until(() => field.getAttribute("aria-invalid")).toBe("true");
  await field.fill("Ada");
  await field.press("Enter");
  await finished(page);
  await question.waitFor({ state: "detached" });
  const result = await unfold(call, "Result");
  await result.getByText('User response: action=accept, content={"response":"Ada"}').waitFor();
});

test("what a server leaves as it is needs no typing, and a question can be declined", async ({
  daemon,
  model,
  open,
}) => {
  await daemon.register(asker);
  const defaults = { calls: [{ name: "asker__test_elicitation_sep1034_defaults" }] };
  model.says(defaults, { text: ["One."] }, defaults, { text: ["Two."] });
  const page = await open("/chat");
  await ask(page, "once");
  const region = (n: number) =>
    card(page, n, "test_elicitation_sep1034_defaults").getByRole("region", named("Question from asker"));
  await region(1).getByRole("button", named("Answer")).click();
  await log(page).getByText("One.").waitFor();
  expect(JSON.stringify(model.requests.at(-1)!.messages)).toContain("John Doe");
  await finished(page);
  await ask(page, "and again");
  await region(2).getByRole("button", named("Decline")).click();
  await log(page).getByText("Two.").waitFor();
  expect(JSON.stringify(model.requests.at(-1)!.messages)).toContain("action=decline");
});

test("a server asks the model only when it is allowed to", async ({ daemon, model, open }) => {
  await daemon.register(asker);
  model.says(
    { calls: [{ name: "asker__test_sampling", arguments: { prompt: "Name a colour" } }] },
    { text: ["Green"] },
    { text: ["It said so."] },
  );
  const page = await open("/chat", { lang: "ja" });
  await page.getByRole("textbox", named("メッセージ")).fill("色は？");
  await page.getByRole("button", named("送信")).click();
  const question = page.getByRole("region", named("asker からの質問"));
  await question.getByText("Name a colour").waitFor();
  expect(model.requests).toHaveLength(1);
  await question.getByRole("button", named("許可")).click();
  await page.getByRole("log", named("会話")).getByText("It said so.").waitFor();
  expect(JSON.stringify(model.requests.at(-1)!.messages)).toContain("LLM response: Green");
});
