import { expect, test } from "vitest";
import { answer, question, toolCall } from "../test/chat";
import { blocksOf, runsOf } from "./blocks";

const shape = (runs: ReturnType<typeof runsOf>) =>
  runs.map(({ calls, folded }) => `${folded ? "folded" : "card"} ${calls.map(({ n }) => n).join(",")}`);

test("three that went well are one, a failure is always seen, and the order stays", () => {
  expect(shape(runsOf([toolCall(1), toolCall(2)]))).toEqual(["card 1", "card 2"]);
  const calls = [1, 2, 3, 4, 5, 6, 7].map((n) => toolCall(n, n === 4 ? { status: "error" } : {}));
  expect(shape(runsOf(calls))).toEqual(["folded 1,2,3", "card 4", "folded 5,6,7"]);
  expect(shape(runsOf([toolCall(1), toolCall(2), toolCall(3, { status: "running" })]))).toEqual([
    "card 1",
    "card 2",
    "card 3",
  ]);
});

test("steps without a word between them are one chain; a new question closes it", () => {
  const blocks = blocksOf([
    question("u1"),
    answer("a1", { text: "Let me look.", tool_calls: [toolCall(1)] }),
    answer("a2", { tool_calls: [toolCall(2)] }),
    answer("a3", { tool_calls: [toolCall(3)] }),
    answer("a4", { text: "Here it is." }),
    question("u2"),
    answer("a5", { tool_calls: [toolCall(4)] }),
  ]);
  expect(blocks.map(({ kind }) => kind)).toEqual(["user", "answer", "calls", "answer", "user", "calls"]);
  const chains = blocks.filter((block) => block.kind === "calls");
  expect(chains.map(({ runs }) => shape(runs))).toEqual([["folded 1,2,3"], ["card 4"]]);
  expect(chains.map(({ latest }) => latest)).toEqual([false, true]);
});

test("an answer that has not begun is shown, one that has nothing to say is not", () => {
  expect(blocksOf([answer("a", { state: "streaming" })])).toHaveLength(1);
  expect(blocksOf([answer("a", { state: "complete" })])).toHaveLength(0);
});
