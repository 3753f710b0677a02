<?php
// SPDX-License-Identifier: Apache-2.0
// Code of a file that php.php includes.
$part = one(2);

return $part
    + two(3);
