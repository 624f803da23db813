/** The test function of all browser tests: a lab of real programs, and a page that must stay free of complaints. */
import { test as base, expect, type ConsoleMessage, type Page } from '@playwright/test';
import { adminPassword, Lab, type Server } from './lab.ts';

export { expect } from '@playwright/test';
export type { Page } from '@playwright/test';

/**
 * An address as servers have it in company networks, which the browser is told to look for on this machine. Pages from
 * it are not trusted as those from the loopback address are. (TEST-NET-3, RFC 5737.)
 */
export const plainHttpHost = '203.0.113.7';

interface Fixtures {
  /** Messages of the browser's console that a test expects, e.g. of a connection that it cuts. */
  expectedComplaints: RegExp[];
  lab: Lab;
  noComplaints: void;
}

export const test = base.extend<Fixtures>({
  expectedComplaints: [[], { option: true }],

  lab: async ({}, use, info) => {
    const lab = await Lab.open();
    await use(lab);
    const outputs = await lab.close();
    if (info.status === info.expectedStatus) return;
    for (const { name, output } of outputs) {
      await info.attach(`${name}.log`, { body: output, contentType: 'text/plain' });
    }
  },

  noComplaints: [
    // the lab is asked for because it must close after this: a page complains of a server that goes away
    async ({ context, expectedComplaints, lab: _ }, use) => {
      const complaints: string[] = [];
      const complain = (text: string) => {
        if (!expectedComplaints.some(expected => expected.test(text))) complaints.push(text);
      };
      context.on('console', (message: ConsoleMessage) => {
        if (['error', 'warning', 'assert'].includes(message.type())) {
          complain(`${message.text()} (${message.location().url})`);
        }
      });
      context.on('weberror', error => complain(error.error().stack ?? error.error().message));
      await use();
      expect(complaints, 'complaints in the browser').toEqual([]);
    },
    { auto: true },
  ],
});

/** The server's address as a browser in the company's network has it. */
export function plainHttp(server: Server): string {
  return `http://${plainHttpHost}:${server.port}`;
}

/** Opens a page and waits until the browser has taken it over. */
export async function open(page: Page, url: string): Promise<void> {
  await page.goto(url);
  await hydrated(page);
}

export async function hydrated(page: Page): Promise<void> {
  await page.waitForFunction(() => document.documentElement.dataset['hydrated'] === '1');
}

/** Logs in as a person does, and comes to the list of workers. */
export async function logIn(page: Page, url: string, password = adminPassword): Promise<void> {
  await open(page, `${url}/login`);
  await fillLogin(page, password);
  await page.waitForURL(/\/workers$/);
  await hydrated(page);
}

export async function fillLogin(page: Page, password: string): Promise<void> {
  await page.getByLabel('User', { exact: true }).fill('admin');
  await page.getByLabel('Password', { exact: true }).fill(password);
  await page.getByRole('button', { name: 'Log in' }).click();
}
