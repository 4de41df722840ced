import { beforeEach, expect, test } from "vitest";
import { adoptTokenFromAddress, readToken, storeToken } from "./token";

beforeEach(() => storeToken(null));

test("the token of a link is kept, and taken out of the address", () => {
  window.history.replaceState(null, "", "/activity?server=fs#token=secret");
  expect(adoptTokenFromAddress()).toBe(true);
  expect(readToken()).toBe("secret");
  expect(window.location.href).not.toContain("secret");
  expect(window.location.pathname + window.location.search).toBe("/activity?server=fs");
});

test("an address without a token changes nothing", () => {
  storeToken("old");
  window.history.replaceState(null, "", "/#content");
  expect(adoptTokenFromAddress()).toBe(false);
  expect([readToken(), window.location.hash]).toEqual(["old", "#content"]);
});
