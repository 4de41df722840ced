import { QueryObserver } from "@tanstack/react-query";
import { afterEach, expect, test, vi } from "vitest";
import { queryClient } from "../api/queries";
import { environmentsQuery } from "./queries";

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
  queryClient.clear();
});

test("environments are asked for again while they are looked at, and not behind another tab", async () => {
  vi.useFakeTimers();
  const asked = vi.fn(async () => Response.json({ repositories: [] }));
  vi.stubGlobal("fetch", asked);
  const leave = new QueryObserver(queryClient, environmentsQuery).subscribe(() => {});
  await vi.advanceTimersByTimeAsync(5_100);
  expect(asked).toHaveBeenCalledTimes(2);
  vi.spyOn(document, "visibilityState", "get").mockReturnValue("hidden");
  await vi.advanceTimersByTimeAsync(60_000);
  expect(asked).toHaveBeenCalledTimes(2);
  vi.spyOn(document, "visibilityState", "get").mockReturnValue("visible");
  await vi.advanceTimersByTimeAsync(5_100);
  expect(asked).toHaveBeenCalledTimes(3);
  leave();
  await vi.advanceTimersByTimeAsync(60_000);
  expect(asked).toHaveBeenCalledTimes(3);
});
