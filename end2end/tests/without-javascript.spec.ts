import { expect, fillLogin, test } from '../support/test.ts';

// the browser notes that nobody runs what the page preloads
test.use({ javaScriptEnabled: false, expectedComplaints: [/was preloaded using link preload but not used/] });

test('one can log in, look at workers and get a join command', async ({ page, lab }) => {
  const server = await lab.server();
  await lab.fleet(server, 3);
  await page.goto(server.url);
  await fillLogin(page, 'Granite-Harbour-42');
  await expect(page.getByText('npu-00002').first()).toBeVisible();
  await expect(page.getByText('8 × 910B3').first()).toBeVisible();

  await page.goto(`${server.url}/workers/add`);
  await page.getByText('Ascend 310P').click();
  await page.getByText('Binary', { exact: true }).click();
  await page.getByRole('button', { name: 'Update the command' }).click();
  const token = await server.file('token');
  await expect(page.locator('#join-command')).toContainText(`--token ${token}`);

  await page.getByRole('link', { name: 'Settings' }).click();
  await expect(page.getByRole('heading', { name: 'Settings' })).toBeVisible();
  await expect(page.getByText(token)).toBeHidden();
});

test('a wrong password is answered with a page that says so', async ({ page, lab }) => {
  const server = await lab.server();
  await page.goto(`${server.url}/login`);
  await fillLogin(page, 'not-the-password');
  await expect(page.getByText('User or password is wrong.')).toBeVisible();
});
