// Servers in containers and elsewhere, as a person adds and sees them.
import { WAYWARD_IMAGE } from "./support/places";
import { named, row, showsStatus, toggle } from "./support/screen";
import { expect, test, until } from "./support/test";

test("a container is added with its limits, and what is in force is shown", async ({ daemon, open }) => {
  const page = await open("/");
  await page.getByRole("button", named("Add server")).click();
  const form = page.getByRole("dialog", named("Add server"));
  await form.getByRole("textbox", named("Name")).fill("boxed");
  await form.getByText("Container image", { exact: true }).click();
  await form.getByRole("textbox", named("Image")).fill(WAYWARD_IMAGE);
  await form.getByRole("textbox", named("Arguments (one per line)")).fill("--resources\n2");
  await form.getByRole("textbox", named("Volumes (one path per line)")).fill("/data");
  await form.getByRole("combobox", named("Isolation by")).selectOption("podman");
  await form.getByText("More options").click();
  await form.getByRole("textbox", named("Memory")).fill("256M");
  await form.getByLabel("Processes", { exact: true }).fill("64");
  await form.getByRole("button", named("Save")).click();
  await form.waitFor({ state: "detached" });
  await showsStatus(page, "boxed", "Connected");
  await until(() => row(page, "boxed").locator("code").first().textContent()).toContain(WAYWARD_IMAGE);
  const server = await daemon.server("boxed");
  expect(server).toMatchObject({
    kind: "container",
    image: WAYWARD_IMAGE,
    volumes: ["/data"],
    resource_limits: { memory: "256M", pids: 64 },
  });

  await row(page, "boxed").getByRole("link", named("boxed")).click();
  const main = page.getByRole("main");
  await main.getByText("Isolation in force").waitFor();
  for (const text of [WAYWARD_IMAGE, "/data", server.container_id.slice(0, 12)])
    await main.getByText(text, { exact: true }).first().waitFor();
  await main.getByText(String(server.isolation.runtime)).first().waitFor();
  await main.getByRole("img", { name: /^Memory over the last/ }).waitFor();

  await page.getByRole("button", named("Delete boxed")).click();
  const question = page.getByRole("alertdialog", named("Delete boxed?"));
  await question.getByRole("checkbox", named("Also delete its volumes")).check();
  await question.getByRole("button", named("Delete")).click();
  await page.getByText("No servers yet").waitFor();
  expect(await daemon.servers()).toEqual([]);
});

test("an image that is not there says so, and its switch goes back", async ({ daemon, open }) => {
  await daemon.ask("POST", "/mcp/servers", {
    name: "nowhere",
    image: "localhost/cofer-test/no-such-image",
    provider: "podman",
    enabled: false,
  });
  const page = await open("/");
  await showsStatus(page, "nowhere", "Stopped");
  await toggle(page, "nowhere").click();
  await showsStatus(page, "nowhere", "Error");
  await until(() => toggle(page, "nowhere").getAttribute("aria-checked")).toBe("false");
  await page.getByRole("button", named("Show error for nowhere")).click();
  await page
    .getByRole("region", named("Error details for nowhere"))
    .getByText(/no-such-image/)
    .first()
    .waitFor();
});
