/** A script of server behaviours, to compare HTTP clients with and without the client half. */
package io.idempotence.it.behaviour;
