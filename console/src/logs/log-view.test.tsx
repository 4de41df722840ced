import { render, screen } from "@testing-library/react";
import { expect, test, vi } from "vitest";
import type { LogEntry } from "../api/schema";
import { LogView } from "./log-view";

const lines: LogEntry[] = Array.from({ length: 100_000 }, (_, index) => ({
  seq: index + 1,
  at: "2026-01-01T00:00:00Z",
  stream: "stderr",
  line: `line ${index + 1}`,
}));

test("of a hundred thousand lines only those in sight are in the page", () => {
  vi.spyOn(HTMLElement.prototype, "clientHeight", "get").mockReturnValue(400);
  vi.spyOn(HTMLElement.prototype, "clientWidth", "get").mockReturnValue(800);
  vi.spyOn(HTMLElement.prototype, "offsetHeight", "get").mockReturnValue(20);
  render(<LogView lines={lines} search="" follow={false} wrap onFollow={() => {}} empty="" />);
  const log = screen.getByRole("log", { name: "Server log" });
  expect(log.textContent).toContain("line 1");
  expect(log.querySelectorAll("[data-index]").length).toBeGreaterThan(0);
  expect(log.querySelectorAll("[data-index]").length).toBeLessThan(200);
});
