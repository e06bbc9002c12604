// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

import { registerDetailsViewSection, registerRoute, registerSidebarEntry } from '@kinvolk/headlamp-plugin/lib';
import { Fit } from './pages/Fit';
import { Quota } from './pages/Quota';
import { Quotas } from './pages/Quotas';
import { Section } from './pages/Sections';
import { Views } from './pages/Views';
import { paths } from './parts/Page';

const parent = 'shared-quota';

const pages = [
  { name: 'shared-quota-quotas', label: 'Quotas', path: paths.quotas, component: Quotas },
  { name: 'shared-quota-views', label: 'My namespaces', path: paths.views, component: Views },
  { name: 'shared-quota-fit', label: 'Does it fit?', path: paths.fit, component: Fit },
];

registerSidebarEntry({ parent: null, name: parent, label: 'Shared quotas', url: paths.quotas, icon: 'mdi:gauge' });
for (const { name, label, path, component } of pages) {
  registerSidebarEntry({ parent, name, label, url: path });
  registerRoute({ path, sidebar: name, name: label, exact: true, component });
}
registerRoute({ path: paths.quota, sidebar: 'shared-quota-quotas', name: 'Quota', exact: true, component: Quota });
registerDetailsViewSection(Section);
