/** Parts of the list of workers and of a worker's page. */
import type { Locator, Page } from '@playwright/test';
import { expect } from '@playwright/test';

export type State = 'ready' | 'not_ready' | 'unreachable' | 'maintenance' | 'pending';

export function card(page: Page, name: string): Locator {
  return page.locator('li.card').filter({ has: page.getByRole('heading', { name, exact: true }) });
}

export async function expectState(card: Locator, state: State, timeout?: number): Promise<void> {
  await expect(card).toHaveAttribute('data-state', state, timeout === undefined ? {} : { timeout });
}

/** The banner's line about a worker, which may be folded away. */
export function bannerLine(page: Page, name: string): Locator {
  return page.locator('.banner-line').filter({ has: page.getByRole('link', { name, exact: true, includeHidden: true }) });
}

/** The number on the chip that filters by a state. */
export function chip(page: Page, name: string): Locator {
  return page.getByRole('list', { name: 'Filter by state' }).getByRole('link', { name: new RegExp(`^${name}`) });
}

/** The table's row of a worker; large fleets are shown as a table. */
export function row(page: Page, name: string): Locator {
  return page.getByRole('row').filter({ has: page.getByRole('link', { name, exact: true }) });
}
