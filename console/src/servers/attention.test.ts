import i18next from "i18next";
import { expect, test } from "vitest";
import { serverView } from "../test/server";
import { attentionWord, needsAttention, reasonWords } from "./attention";
import { countOf, selectServers } from "./select";

const LOOP = "it crashes again and again; a restart waits for 8 s";
const looping = serverView({ name: "loop", status: "restarting", health: "warning", health_reasons: [LOOP] });
const silent = serverView({
  name: "silent",
  status: "unresponsive",
  health: "warning",
  health_reasons: ["it did not answer a heartbeat within 300 ms"],
});
const well = serverView({ name: "well" });
const failed = serverView({ name: "failed", status: "error", enabled: false });

test("crash loops, silence and health warnings need attention; failed servers have their own word", () => {
  expect([looping, silent, well, failed].map(needsAttention)).toEqual([true, true, false, false]);
  const { t } = i18next;
  expect(attentionWord(looping, t)).toBe("Crash loop");
  expect(attentionWord(silent, t)).toBe("Not responding");
  expect(reasonWords(LOOP, t)).toBe("Crash loop: restarts wait 8 s");
  expect(reasonWords("something of a newer daemon", t)).toBe("something of a newer daemon");
});

test("filter chips count what the search leaves", () => {
  const all = [looping, silent, well, failed];
  expect(countOf(all, "all", "")).toBe(4);
  expect(countOf(all, "all", "l")).toBe(4);
  expect(countOf(all, "attention", "loop")).toBe(1);
  expect(countOf(all, "ready", "loop")).toBe(0);
  expect(selectServers(all, "", "attention", "name").map(({ name }) => name)).toEqual(["loop", "silent"]);
});
