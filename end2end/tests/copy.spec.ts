import { expect, logIn, open, type Page, plainHttp, test } from '../support/test.ts';

// a page from this address has no navigator.clipboard, as in a company network without https
test('the join command is copied on a page over plain http', async ({ page, lab }) => {
  const server = await lab.server();
  await logIn(page, plainHttp(server));
  await open(page, `${plainHttp(server)}/workers/add?form=binary`);
  expect(await page.evaluate(() => window.isSecureContext)).toBe(false);

  const command = await page.locator('#join-command').innerText();
  await copyButton(page).click();
  await expect(copyButton(page)).toHaveText('Copied');
  const name = page.getByLabel('Worker name');
  await name.focus();
  await page.keyboard.press('ControlOrMeta+v');
  expect(inOneLine(await name.inputValue())).toBe(inOneLine(command));
});

test('a copy that the browser refuses is not called one, and the command is selected', async ({ page, lab }) => {
  const server = await lab.server();
  await page.addInitScript(() => {
    document.execCommand = () => false;
  });
  await logIn(page, plainHttp(server));
  await open(page, `${plainHttp(server)}/workers/add?form=binary`);

  await copyButton(page).click();
  await expect(page.getByText('press Ctrl+C')).toBeVisible();
  await expect(copyButton(page)).not.toHaveText('Copied');
  const selected = await page.evaluate(() => String(window.getSelection()));
  expect(selected.trim()).toBe(await page.locator('#join-command').innerText());
});

function copyButton(page: Page) {
  return page.locator('figure', { has: page.locator('#join-command') }).getByRole('button');
}

/** As a field of one line takes it. */
function inOneLine(text: string): string {
  return text.trim().split(/\s+/).join(' ');
}
