-- SPDX-License-Identifier: Apache-2.0
-- tables.sql - tables, indices, joins, windows, JSON, full text; all that it says is deterministic.
create table t(a integer primary key, b text, c real);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 60000)
    insert into t select i, printf('%0*d', i % 50 + 1, i * 7919 % 60013), i / 7.0 from n;
create index tb on t(b);
create index tc on t(c);
select count(*), sum(length(b)), round(total(c), 3) from t;
select b, count(*) over (partition by length(b) order by a rows 3 preceding) from t
    order by b limit 20;
select t.a, u.a from t join t u on t.b = u.b and t.a < u.a limit 10;
update t set b = b || upper(hex(a)) where a % 3 = 0;
delete from t where a % 7 = 0;
select json_group_array(json_object('a', a, 'b', b)) from (select * from t limit 200);
create virtual table f using fts5(w);
insert into f select b || ' common ' || (a % 10) from t;
select count(*) from f where f match 'common AND 7';
insert into f(f) values('optimize');
vacuum;
pragma integrity_check;
pragma foreign_key_check;
analyze;
select count(*) from sqlite_stat1;
begin;
delete from t;
rollback;
select count(*), max(b) from t;
.schema
.dump
