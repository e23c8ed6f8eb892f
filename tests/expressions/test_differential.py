"""Every operator and function, on columns with NULLs and extremes, against DuckDB."""

from __future__ import annotations

import duckdb
import pytest

from tests.expressions.differential import TABLE, check

pytestmark = pytest.mark.skipif(
    duckdb.__version__ < "2", reason="scalar functions mean what they mean in DuckDB 2, which Python 3.10 does not have"
)

# One line per family; expressions are separated by "; ".
EXACT = r"""
i + j; i - j; i * j; i // j; i % j; -i; i / j; n + small; x + y; x - i; x * d; x / y; x % y; i % x; i & j; i | j;
xor(i, j); ~i; i << j; i >> j; n << 2; d + 1; d / 3; d = 1.5; d < i; d >= 2; f + 1; f * f; f = x; i = x;
i = j; i <> n; i < 5; x = y; x < y; x <= y; x > y; x >= y; x <> y; f < y; b = c; b < c; s = t; s < t; s >= 'a';
ts < u; ts = '2024-01-01'; ts >= '2024-02-29 12:34:56.123456'; day < e; day < ts; day = '2024-02-29';
'2024-01-01' < ts; x is distinct from y; x is not distinct from y; i is distinct from null; s is distinct from t;
null = null; null is distinct from null; i = null;
i between j and 10; x between -1 and y; i not between 0 and 5; ts between '2000-01-01' and '2024-12-31';
i in (1, 7, -7); i not in (1, 7); i in (1, null); i in (j, 3); x in (1.5, 2, 0); x in ('nan'::double);
s in ('abc', 'q'); s not in ('abc', null); ts in ('1970-01-01', '2024-01-01'); d in (1.5, 3); d in (3, 7);
null in (1); i in (1.5, 7);
b and c; b or c; not b; b is true; b is false; b is not true; b is null; i is null; x is not null; b and null;
null or c; b is not distinct from c; not null;
case when i > 0 then i else j end; case when b then x end;
case i when 1 then 'one' when 7 then 'seven' else s end; case when j <> 0 then i % j end;
case x when 1.5 then 1 else 2.5 end; case when b then null else 5 end; case when b then null end; if(b, i, x);
coalesce(i, j, 0); coalesce(x, i); coalesce(null, s); coalesce(j, i // 0); nullif(i, 1); nullif(x, y);
nullif(i, 1.5); nullif(null, 1); ifnull(s, 'none'); greatest(i, j); least(i, j, n); greatest(x, y);
least(x, y, 0.5); greatest(s, t); greatest(i, x); greatest(ts, day); greatest(b, c); greatest(null, i);
greatest(null, null); case ts when '1970-01-01' then 1 else 0 end; coalesce(ts, '2020-01-01'); greatest(i);
cast(i as integer); cast(n as bigint); cast(i as double); cast(x as bigint); cast(x as integer);
cast(x as tinyint); cast(f as integer); cast(x as float); cast(f as double); cast(d as double);
cast(d as integer); cast(d as bigint); cast(d as float); cast(d as tinyint); cast(i as decimal(18,3));
cast(n as decimal(5,2)); cast(small as decimal(5,2)); cast(d as decimal(12,4)); cast(d as decimal(10,1));
cast(d as decimal(4,1)); cast(i as boolean); cast(x as boolean); cast(b as integer); cast(b as double);
cast(b as varchar); cast(i as varchar); cast(small as varchar); cast(s as varchar); cast(day as varchar);
cast(ts as varchar); cast(number as integer); cast(number as bigint); cast(number as tinyint);
cast(number as double); cast(junk as integer); try_cast(junk as integer); try_cast(junk as bigint);
try_cast(junk as double); try_cast(junk as date); try_cast(junk as timestamp); try_cast(junk as boolean);
cast(junk as boolean); cast("when" as timestamp); cast("when" as date); cast(ts as date); cast(day as timestamp);
cast(null as integer); try_cast(x as integer); try_cast(i as integer); timestamp '2024-01-01 10:00:00';
date '2024-01-01'; cast(true as integer); cast(f as bigint); cast(f as boolean); cast(number as boolean);
cast(ts as timestamp); try_cast(d as decimal(4,1));
abs(i); abs(x); abs(small); abs(d); ceil(x); floor(x); ceil(i); floor(d); round(x); round(x, 1); round(x, -1);
round(i); round(i, 2); trunc(x); trunc(i); sign(x); sign(i); sign(d); sqrt(x); isnan(x); isinf(x); isfinite(x);
isnan(f); isfinite(i); mod(i, j); pi(); round(d, 1); round(f, 1); round(x, null);
lower(s); upper(s); length(s); len(s); strlen(s); substring(s, 2, 2); substring(s, 0, 2); substring(s, 2);
substring(s, -2); substring(s, 0); substring(s, 10, 2); substring(s, 1, 0); substring(s, -2, 1);
substring(s, -4, 2); substring(s, -2, 9); substring(s, -9, 7); left(s, 2); left(s, -2); left(s, 0); right(s, 2);
right(s, -2); right(s, 0); trim(s); ltrim(s); rtrim(s); trim(s, 'abc'); ltrim(s, 'é日x'); rtrim(s, 'c ');
trim(s, ''); concat(s, t); concat(s, i, b, day); s || t; s || i; s || null; concat(null); replace(s, 'b', 'XX');
replace(s, '', 'q'); replace(s, '日', ''); starts_with(s, 'a'); ends_with(s, 'c'); suffix(s, ''); prefix(s, 'h');
contains(s, 'b'); contains(s, ''); contains(s, '%'); strpos(s, 'l'); strpos(s, 'b'); strpos(s, '語');
strpos(s, ''); instr(s, 'c'); position('b' in s); lpad(s, 5, '*'); rpad(s, 5, 'é'); lpad(s, 2, 'x');
rpad(s, 0, 'x'); split_part(s, ',', 1); split_part(s, ',', 4); split_part(s, ',', -1); split_part(s, ',', 9);
split_part(s, 'l', 2); regexp_matches(s, 'b'); regexp_matches(s, '^a.b'); regexp_matches(s, 'ABC', 'i');
regexp_full_match(s, 'a.*'); s ~ 'b';
s like 'a%'; s like '%c'; s like '%b%'; s like 'abc'; s like '_b_'; s like '%'; s like ''; s like 'a_b';
s like '%本%'; s like 'h_llo'; s ilike 'ab%'; s ilike 'STRASSE'; s ilike 'straße'; s ilike 'HÉ%'; s not like 'a%';
s not ilike 'a%'; s like 'a\%b' escape '\'; s like 'a!%b!_c' escape '!'; s like null; s like '%%'; s like 'a%c';
s like '.*';
date_trunc('hour', ts); date_trunc('day', ts); date_trunc('week', ts); date_trunc('month', ts);
date_trunc('quarter', ts); date_trunc('year', ts); date_trunc('minute', ts); date_trunc('second', ts);
date_trunc('millisecond', ts); date_trunc('microseconds', ts); date_trunc('day', day); date_trunc('month', day);
extract(year from ts); extract(quarter from ts); extract(month from ts); extract(week from ts);
extract(day from ts); extract(dow from ts); extract(isodow from ts); extract(doy from ts); extract(hour from ts);
extract(minute from ts); extract(second from ts); extract(millisecond from ts); extract(microsecond from ts);
extract(epoch from ts); date_part('year', ts); date_part('dow', day); year(ts); month(day); day(ts); hour(ts);
hour(day); minute(ts); second(ts); dayofweek(ts); dayofyear(ts); week(ts); quarter(ts); isodow(ts); epoch(ts);
epoch_ms(ts); epoch_us(ts); epoch(day); epoch_us(day); epoch_ms(n); make_timestamp(n);
time_bucket(interval 5 minute, ts); time_bucket(interval 7 days, ts); time_bucket(interval 1 week, day);
time_bucket(interval '90 seconds', ts); ts + interval 1 day; ts - interval '1 day'; interval 3 hours + ts;
ts + interval 90 seconds; day + interval 1 hour; ts + interval 1 month; ts - interval 1 month;
ts + interval 1 year; day + interval 3 months; day + 1; day - 1; 1 + day; day + n; day - e;
ts + interval (-5) minutes; ts + interval '-5' minutes;
"""
# The C libraries of two builds may differ in the last bit here.
APPROXIMATE = """
ln(x); log(x); log10(x); log2(x); exp(x); power(x, y); x ** 2; pow(i, 2); sin(x); cos(x); tan(x); asin(y);
acos(y); atan(x); atan2(x, y); sinh(y); cosh(y); tanh(x); cbrt(x); degrees(x); radians(x); ln(i); sqrt(d);
"""


def _split(text: str) -> list[str]:
    return [sql.strip() for sql in text.replace(";\n", "; ").split("; ") if sql.strip()]


@pytest.mark.parametrize("sql", _split(EXACT))
def test_equals_duckdb(sql: str) -> None:
    check(sql)


@pytest.mark.parametrize("sql", _split(APPROXIMATE))
def test_is_near_duckdb(sql: str) -> None:
    check(sql, tolerance=1e-14)


@pytest.mark.parametrize("sql", _split(EXACT)[::7])
def test_is_the_same_on_slices(sql: str) -> None:
    """A slice has an offset in its buffers; a kernel that forgets it reads its neighbours."""
    check(sql, TABLE.slice(3, 4))
