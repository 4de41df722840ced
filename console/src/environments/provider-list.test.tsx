import { render, screen, within } from "@testing-library/react";
import { expect, test } from "vitest";
import { ProviderList } from "./provider-list";

test("providers are listed in their order with runtime or reason", () => {
  render(
    <ProviderList
      providers={[
        { name: "gvisor", installed: true, available: true, reason: null, runtime: "runsc --platform=systrap" },
        { name: "e2b", installed: false, available: false, reason: "this version cannot launch it", runtime: null },
      ]}
    />,
  );
  const items = within(screen.getByRole("list", { name: "Isolation providers" })).getAllByRole("listitem");
  expect(items.map((item) => item.textContent)).toEqual([
    "gvisorAvailablerunsc --platform=systrap",
    "e2bNot availablethis version cannot launch it",
  ]);
});
