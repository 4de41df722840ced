import { expect, test } from "vitest";
import { patiently } from "./lazy-page";

test("a file that could not be loaded is asked for again, and not for ever", async () => {
  let asked = 0;
  const after = (failures: number) => () => {
    asked += 1;
    return asked > failures ? Promise.resolve("here") : Promise.reject(new Error("the network changed"));
  };
  expect(await patiently(after(2), [0, 0])).toBe("here");
  expect(asked).toBe(3);
  asked = 0;
  await expect(patiently(after(9), [0, 0])).rejects.toThrow("the network changed");
  expect(asked).toBe(3);
});
