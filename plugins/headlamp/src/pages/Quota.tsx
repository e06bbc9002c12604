// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

import { Box, FormControl, InputLabel, NativeSelect, Typography } from '@mui/material';
import { useState } from 'react';
import { useParams } from 'react-router-dom';
import { group, useFollowed } from '../cluster/headlamp';
import { barsOf, unknown } from '../model/bars';
import { waitingIn } from '../model/refusals';
import { surgeOf } from '../model/surge';
import type { ClusterQuota, LocalQuota, Peak } from '../model/types';
import { selectorOf, useOf } from '../model/use';
import { counted, sentences } from '../model/words';
import { Bars } from '../parts/Bars';
import { Conditions, Grid, WaitingTable } from '../parts/Lists';
import { Page, Part, paths, To, useClusterName } from '../parts/Page';
import { Note, States, Time } from '../parts/States';
import { Surge } from '../parts/Surge';
import { ModeTags, OperatorState, quotasPath } from './Quotas';

const viewsPath = `${group}/localresourcequotas`;

// Namespaces are those that share the quota, the one that uses most of a resource first.
function Namespaces({ quota }: { quota: ClusterQuota }) {
  const resources = Object.keys(quota.spec.quota.hard ?? {}).sort();
  const [chosen, setChosen] = useState('');
  const resource = resources.includes(chosen) ? chosen : (resources[0] ?? '');
  const rows = useOf(quota, resource);
  return (
    <Part title="Namespaces by use">
      <FormControl sx={{ mb: 1 }}>
        <InputLabel htmlFor="resource" variant="standard">
          Resource
        </InputLabel>
        <NativeSelect inputProps={{ id: 'resource' }} value={resource} onChange={event => setChosen(event.target.value)}>
          {resources.map(name => (
            <option key={name}>{name}</option>
          ))}
        </NativeSelect>
      </FormControl>
      {rows.length === 0 ? (
        <Note severity="info">The quota selects no namespace.</Note>
      ) : (
        <Grid
          label={`Namespaces by use of ${resource}`}
          columns={['Namespace', 'Used', 'Of the limit', 'Of what all use']}
          rows={rows.map(row => ({
            key: row.namespace,
            cells: [row.namespace, row.used, <Share key="hard" part={row.ofHard} />, <Share key="used" part={row.ofUsed} />],
          }))}
        />
      )}
    </Part>
  );
}

function Share({ part }: { part: number | null }) {
  return part === null ? (
    unknown
  ) : (
    <Box sx={{ display: 'flex', alignItems: 'center', gap: 1, minWidth: 90 }}>
      <Box aria-hidden sx={{ flex: 1, height: 8, border: 1, borderColor: 'text.secondary' }}>
        <Box sx={{ height: '100%', width: `${part * 100}%`, bgcolor: 'text.secondary' }} />
      </Box>
      {Math.floor(part * 100)}%
    </Box>
  );
}

// Peaks is the most that was used and reserved.
function Peaks({ quota }: { quota: ClusterQuota }) {
  const peaks = quota.status?.peaks ?? [];
  const surges = surgeOf(quota) !== undefined;
  const cell = (peak?: Peak) =>
    peak ? (
      <>
        {peak.amount}, <Time at={peak.at} />
      </>
    ) : (
      '?'
    );
  return (
    <Part title="Peaks">
      {peaks.length === 0 ? (
        <Note severity="info">Nothing is known yet.</Note>
      ) : (
        <>
          <Typography>The most that was used and reserved at once. A day is one in UTC.</Typography>
          <Grid
            label="Peaks of each resource"
            columns={['Resource', 'Today', '7 days', '30 days', ...(surges ? ['Surge in 30 days'] : [])]}
            rows={peaks.map(({ resource, day, week, month, surge }) => ({
              key: resource,
              cells: [resource, cell(day), cell(week), cell(month), ...(surges ? [surge ? cell(surge) : '-'] : [])],
            }))}
          />
        </>
      )}
    </Part>
  );
}

function Waiting({ quota }: { quota: ClusterQuota }) {
  const followed = useFollowed<LocalQuota>(useClusterName(), viewsPath, `metadata.name=${quota.metadata.name}`);
  const waiting = waitingIn(followed.items);
  return (
    <Part title="Who waits">
      <States of={followed} what="LocalResourceQuotas" empty={<>The quota has no local views yet.</>}>
        {waiting.length === 0 ? <Note severity="success">No workload waits for room.</Note> : <WaitingTable waiting={waiting} of={quota.metadata.name} />}
      </States>
    </Part>
  );
}

function Details({ quota }: { quota: ClusterQuota }) {
  const { name, generation } = quota.metadata;
  const surge = surgeOf(quota);
  const outdated = (quota.status?.observedGeneration ?? 0) < (generation ?? 0);
  return (
    <>
      <Typography sx={{ overflowWrap: 'anywhere' }}>
        {counted(quota.status?.namespaceCount ?? 0, 'namespace')} with {selectorOf(quota)}
      </Typography>
      <ModeTags quota={quota} />
      {outdated && <Note severity="warning">Stale: the figures are of an older spec. The operator counts for the present one.</Note>}
      <Bars bars={barsOf(quota)} quota={name} />
      {surge && (
        <Part title="Surge">
          <Surge surge={surge} of={name} here={false} />
        </Part>
      )}
      <Part title="Conditions">
        <Conditions said={sentences(quota.status?.conditions, generation)} />
      </Part>
      <Namespaces quota={quota} />
      <Waiting quota={quota} />
      <Peaks quota={quota} />
    </>
  );
}

// Quota shows all of one quota.
export function Quota() {
  const { name } = useParams<{ name: string }>();
  const followed = useFollowed<ClusterQuota>(useClusterName(), quotasPath, `metadata.name=${name}`);
  return (
    <Page title={`Quota ${name}`}>
      <Typography>
        <To path={paths.quotas}>All quotas</To>
      </Typography>
      <OperatorState />
      <States of={followed} what="ClusterResourceQuotas" empty={<>There is no ClusterResourceQuota {name}.</>}>
        {followed.items.map(quota => (
          <Details key={quota.metadata.uid} quota={quota} />
        ))}
      </States>
    </Page>
  );
}
