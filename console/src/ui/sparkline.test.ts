import { expect, test } from "vitest";
import { pointsOf } from "./sparkline";

test("values run from the left edge to the right, the highest at the top", () => {
  expect(pointsOf([0, 5, 10], 80, 22, 10)).toEqual([
    [0, 21],
    [40, 11.5],
    [80, 2],
  ]);
});

test("one value is a dash at the right edge, and not a rise from nothing", () => {
  expect(pointsOf([10], 80, 22, 10)).toEqual([
    [74, 2],
    [80, 2],
  ]);
});
