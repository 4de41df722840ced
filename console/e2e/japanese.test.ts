// The console in Japanese, and Japanese in the console.
import type { Page } from "playwright-core";
import { WAYWARD } from "./support/places";
import { named } from "./support/screen";
import { test, until } from "./support/test";

const rowOf = (page: Page, name: string) =>
  page.getByRole("row").filter({ has: page.getByRole("rowheader", named(name)) });

test("the list and its dialogs have their Japanese names", async ({ daemon, open }) => {
  await daemon.wayward("つながる");
  await daemon.wayward("止まる", [], { enabled: false });
  await daemon.wayward("壊れる", ["--exit-at-start", "6"]);
  await daemon.wayward("待つ", ["--hang-at-start"], { enabled: false });
  const page = await open("/", { lang: "ja" });
  await page.getByRole("heading", { level: 1, ...named("サーバー") }).waitFor();
  await until(() => page.locator("html").getAttribute("lang")).toBe("ja");
  const main = page.getByRole("navigation", named("メイン"));
  for (const place of ["サーバー", "アクティビティ", "設定"]) await main.getByRole("link", named(place)).waitFor();
  for (const choice of ["言語", "テーマ"]) await page.getByRole("combobox", named(choice)).waitFor();
  await page.getByRole("searchbox", named("サーバーを検索")).waitFor();
  await page.getByRole("table", named("サーバー")).waitFor();
  for (const [name, word] of [
    ["つながる", "接続済み"],
    ["止まる", "停止"],
    ["壊れる", "エラー"],
  ] as const) {
    await rowOf(page, name).getByRole("cell", named(word)).waitFor();
  }
  await page.getByRole("switch", named("待つ を有効化")).click();
  await rowOf(page, "待つ").getByRole("cell", named("起動中…")).waitFor();
  await page.getByRole("progressbar", named("待つ を起動中")).waitFor();
  await until(() => page.getByRole("status", named("サーバーイベント")).textContent()).toContain("待つ: 起動中…");
  await page.getByRole("switch", named("待つ を有効化")).click();
  for (let n = 0; n < 3; n++) await daemon.call("つながる", "echo", {});
  await page.getByRole("img", { name: /^つながる のレイテンシ/ }).waitFor();
  await page.getByRole("button", named("壊れる のエラーを表示")).click();
  const details = page.getByRole("region", named("壊れる のエラー詳細"));
  await details.getByText("wayward: cannot start, exiting with 6").waitFor();
  await details.getByRole("button", named("再試行")).waitFor();
  await page.getByRole("button", named("止まる を削除")).click();
  const question = page.getByRole("alertdialog", named("止まる を削除しますか？"));
  await question.getByRole("button", named("キャンセル")).click();
  await page.getByRole("button", named("止まる を削除")).click();
  await question.getByRole("button", named("削除")).click();
  await rowOf(page, "止まる").waitFor({ state: "detached" });
  await page.getByRole("button", named("つながる を編集")).waitFor();
});

test("the form has its Japanese names and messages", async ({ daemon, open }) => {
  await daemon.wayward("既存", [], { enabled: false });
  const page = await open("/", { lang: "ja" });
  await page.getByRole("button", named("サーバーを追加")).click();
  const form = page.getByRole("dialog", named("サーバーを追加"));
  for (const tab of ["フォーム", "JSON を貼り付け", "テンプレート"]) await form.getByRole("tab", named(tab)).waitFor();
  for (const field of ["名前", "コマンド", "引数（1 行に 1 つ）", "説明"])
    await form.getByRole("textbox", named(field)).waitFor();
  await form.getByRole("button", named("保存")).click();
  await form.getByText("名前は必須です").waitFor();
  await form.getByText("コマンドは必須です").waitFor();
  await form.getByRole("textbox", named("名前")).fill("既存");
  await form.getByText("「既存」という名前のサーバーは既に存在します").waitFor();
  await form.getByRole("textbox", named("コマンド")).fill("存在しない");
  await form.getByText("コマンド「存在しない」が PATH に見つかりません").waitFor();
  const environment = form.getByRole("group", named("環境変数"));
  await environment.getByRole("button", named("変数を追加")).click();
  await environment.getByLabel("変数 1 の名前", { exact: true }).fill("API_KEY");
  await environment.getByLabel("変数 1 の値", { exact: true }).fill("sk-0123456789abcdefghij");
  await environment.getByRole("button", named("変数 1 の値を表示")).click();
  await form.getByRole("note", named("平文シークレットの警告")).waitFor();
  await form.getByRole("checkbox", named("リソースをツールとして含める")).check();
  await form.getByRole("note", named("コンテキストサイズの警告")).waitFor();
  await form.getByRole("checkbox", named("有効")).waitFor();
  await environment.getByRole("button", named("変数 1 を削除")).click();
  await form.getByRole("tab", named("JSON を貼り付け")).click();
  await form
    .getByRole("textbox", named("mcpServers JSON"))
    .fill(JSON.stringify({ mcpServers: { 輸入: { command: WAYWARD } } }));
  await form.getByRole("button", named("インポートを確認")).click();
  await form.getByRole("table", named("インポートするサーバー")).getByRole("rowheader", named("輸入")).waitFor();
  await form.getByRole("button", named("1 件をインポート")).click();
  await until(async () => (await daemon.servers()).map((server) => server.name)).toContain("輸入");
});

test("a server's page has its Japanese names", async ({ daemon, open }) => {
  await daemon.wayward("詳細", ["--resources", "3"]);
  const page = await open("/servers/%E8%A9%B3%E7%B4%B0/tools", { lang: "ja" });
  await page.getByRole("heading", { level: 1, ...named("詳細") }).waitFor();
  const tabs = page.getByRole("tablist", named("サーバーのセクション"));
  const { total } = await daemon.ask("GET", `/mcp/servers/${encodeURIComponent("詳細")}/tools`);
  for (const tab of [/^概要/, new RegExp(`^ツール ?${total}$`), /^リソース ?3/, /^プロンプト/, /^ログ/, /^設定/])
    await tabs.getByRole("tab", { name: tab }).waitFor();
  await page.getByRole("searchbox", named("ツールを検索")).waitFor();
  await page
    .getByRole("status")
    .filter({ hasText: new RegExp(`^${total} 件中 ${total} 件のツール$`) })
    .waitFor();
  await page.getByRole("button", named("echo のスキーマを表示")).click();
  await page.getByRole("region", named("echo の入力スキーマ")).waitFor();
  await page.getByRole("button", named("echo を実行")).click();
  const dialog = page.getByRole("dialog", named("echo を実行"));
  await dialog.getByRole("button", named("実行")).click();
  await dialog.getByRole("region", named("結果")).waitFor();
  await page.keyboard.press("Escape");
  await tabs.getByRole("tab", { name: /^リソース/ }).click();
  await page.getByRole("searchbox", named("リソースを検索")).waitFor();
  const filter = page.getByRole("group", named("MIME フィルター"));
  for (const kind of ["すべて", "テキスト", "画像", "その他"])
    await filter.getByRole("radio", named(kind)).waitFor({ state: "attached" });
  await page
    .getByRole("status")
    .filter({ hasText: /^3 件中 3 件のリソース$/ })
    .waitFor();
  await tabs.getByRole("tab", { name: /^ログ/ }).click();
  await page.getByRole("log", named("サーバーログ")).waitFor();
});
