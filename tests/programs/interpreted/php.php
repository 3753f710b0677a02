<?php
// SPDX-License-Identifier: Apache-2.0
// Runs for as many seconds as its argument says. Every call in it stands in php.truth, with its lines.
function one($x)
{
    for ($i = 0; $i < 3000; $i++) {
        $x = ($x * 31 + $i) % 1000003;
    }
    return $x;
}

function two($x)
{
    for ($i = 0; $i < 6000; $i++) {
        $x = ($x * 31 + $i) % 1000003;
    }
    return $x;
}

function three($x)
{
    for ($i = 0; $i < 9000; $i++) {
        $x = ($x * 31 + $i) % 1000003;
    }
    return $x;
}

function recurse($depth, $x)
{
    if ($depth > 0) {
        $x += 1;
        return recurse($depth - 1, $x)
            + 1;
    }
    return three($x);
}

trait Shared
{
    public function shared($x)
    {
        return two($x);
    }
}

class Base
{
    use Shared;

    public function method($x)
    {
        return $this->inner($x);
    }

    protected function inner($x)
    {
        return one($x);
    }

    public static function stat($x)
    {
        return two($x) + static::late($x);
    }

    public static function late($x)
    {
        return one($x);
    }

    public function __call($name, $arguments)
    {
        return one($arguments[0]);
    }

    public function __toString()
    {
        return (string) two(7);
    }
}

class Derived extends Base
{
    use Shared;

    protected function inner($x)
    {
        return two($x) + parent::inner($x);
    }

    public static function late($x)
    {
        return three($x);
    }

    public function closures($x)
    {
        $add = function ($y) use ($x) {
            return one($x + $y);
        };
        return $add(1)
            + (fn($y) => two($y))(2);
    }
}

function numbers($x)
{
    for ($i = 0; $i < 3; $i++) {
        yield one($x + $i);
    }
    yield from more($x);
}

function more($x)
{
    yield two($x);
    yield three($x);
}

function fail($x)
{
    if (one($x) >= 0) {
        throw new RuntimeException('expected');
    }
}

function catches($x)
{
    try {
        fail($x);
    } catch (RuntimeException $e) {
        $x += two($x);
    } finally {
        $x += one($x);
    }
    return $x;
}

class Destroyed
{
    public function __destruct()
    {
        two(3);
    }
}

function throws_over_destructor()
{
    $held = new Destroyed();
    throw new LogicException('expected');
}

function callbacks($x)
{
    $list = [3, 1, 2];
    usort($list, function ($a, $b) {
        one($a);
        return $a - $b;
    });
    array_map('two', $list);
    $sum = array_sum(
        array_map(
            [new Derived(), 'shared'],
            $list
        )
    );
    preg_replace_callback('/[a-c]/', function ($match) {
        return one(ord($match[0]));
    }, 'abc');
    return $sum + call_user_func_array('Derived::stat', [$x]);
}

function anonymous($x)
{
    $object = new class {
        public function run($x)
        {
            return two($x);
        }
    };
    return $object->run($x);
}

function fibers($x)
{
    $fiber = new Fiber(function ($y) {
        $y = one($y);
        $z = Fiber::suspend($y);
        return in_fiber($z);
    });
    $x += $fiber->start($x);
    $fiber->resume($x);
    return $fiber->getReturn();
}

function in_fiber($x)
{
    return two($x);
}

function work($x)
{
    $derived = new Derived();
    $x += recurse(6, $x);
    $x += $derived->method($x);
    $x += Derived::stat($x);
    $x += $derived->closures($x);
    $x += $derived->magic($x);
    $x += strlen("$derived");
    foreach (numbers($x) as $n) {
        $x += $n;
    }
    $x += catches($x);
    try {
        throws_over_destructor();
    } catch (LogicException $e) {
        $x += 1;
    }
    $x += callbacks($x);
    $x += anonymous($x);
    $x += include __DIR__ . '/php_part.php';
    $x += eval("return two(5);\n");
    if (class_exists('Fiber')) {
        $x += fibers($x);
    }
    return $x % 1000;
}

$end = microtime(true) + (float) ($argv[1] ?? 5);
$x = 1;
while (microtime(true) < $end) {
    $x = work($x);
}
