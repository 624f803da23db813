import { expect, fillLogin, logIn, open, plainHttp, test } from '../support/test.ts';

test.describe('a refused login', () => {
  // the browser itself reports the answer 401
  test.use({ expectedComplaints: [/the server responded with a status of 401/] });

  test('says so and lets one try again', async ({ page, lab }) => {
    const server = await lab.server();
    await open(page, `${server.url}/login`);
    await fillLogin(page, 'not-the-password');
    await expect(page.getByRole('alert')).toContainText('User or password is wrong.');
    await fillLogin(page, 'Granite-Harbour-42');
    await expect(page.getByRole('heading', { name: 'Workers', exact: true })).toBeVisible();
  });
});

test('the password that the server printed must be changed at the first login', async ({ page, lab }) => {
  const server = await lab.server({ password: null });
  const [, printed = ''] = await server.program.printed(/Password +(\S+)/);
  expect(printed).toBe(await server.file('initial_admin_password'));
  await open(page, `${server.url}/workers`);
  await fillLogin(page, printed);
  await page.waitForURL(/\/settings\/password$/);

  await page.getByLabel('Current password').fill(printed);
  await page.getByLabel('New password', { exact: true }).fill('Copper-Lantern-77');
  await page.getByLabel('New password, again').fill('Copper-Lantern-77');
  await page.getByRole('button', { name: 'Change password' }).click();
  await page.waitForURL(/\/workers$/);
  await expect(server.file('initial_admin_password')).rejects.toThrow('ENOENT');
});

test('a login over plain http by address stays', async ({ page, lab }) => {
  const server = await lab.server();
  await logIn(page, plainHttp(server));
  await page.reload();
  await expect(page.getByRole('heading', { name: 'Workers', exact: true })).toBeVisible();
  const cookies = await page.context().cookies();
  const session = cookies.filter(cookie => cookie.httpOnly);
  expect(session).toHaveLength(1);
  expect(session[0]).toMatchObject({ secure: false, sameSite: 'Lax' });
});

test('two servers on one host do not log each other out', async ({ page, lab }) => {
  const [first, second] = [await lab.server(), await lab.server()];
  await logIn(page, first.url);
  await logIn(page, second.url);
  await open(page, `${first.url}/workers`);
  await expect(page).toHaveURL(`${first.url}/workers`);
  await open(page, `${second.url}/workers`);
  await expect(page).toHaveURL(`${second.url}/workers`);
});

test('logging out ends the session', async ({ page, lab }) => {
  const server = await lab.server();
  await logIn(page, server.url);
  await page.getByLabel('admin').click();
  await page.getByRole('button', { name: 'Log out' }).click();
  await page.waitForURL(/\/login/);
  await page.goto(`${server.url}/workers`);
  await expect(page).toHaveURL(/\/login/);
});
