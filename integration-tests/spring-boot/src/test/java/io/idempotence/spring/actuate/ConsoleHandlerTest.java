package io.idempotence.spring.actuate;

import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.IdempotenceId;
import io.idempotence.server.IdempotenceAdmin;
import io.idempotence.server.storage.CorruptRecordException;
import io.idempotence.server.storage.FaultyStorage;
import io.idempotence.server.storage.Fingerprint;
import io.idempotence.server.storage.IdempotenceRecord.State;
import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.server.storage.IdempotenceStorage.ClaimRequest;
import io.idempotence.server.storage.Owner;
import io.idempotence.server.storage.StorageKey;
import io.idempotence.server.storage.StorageUnavailableException;
import io.idempotence.spring.form.FormTokens;
import java.security.SecureRandom;
import java.time.Clock;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.springframework.mock.web.MockHttpServletRequest;
import org.springframework.mock.web.MockHttpServletResponse;

/** Tests of what the console shows if records cannot be read, or if the storage does not respond. */
class ConsoleHandlerTest {
    private static final IdempotenceId ID = new IdempotenceId("order-7");

    private final IdempotenceStorage records = IdempotenceStorage.inMemory();
    private final FaultyStorage storage = new FaultyStorage(records);
    private final IdempotenceAdmin admin = IdempotenceAdmin.of(storage, "payments");

    private MockHttpServletResponse send(MockHttpServletRequest request) throws Exception {
        ConsoleProperties properties =
                new ConsoleProperties(true, "/idempotence", "OPERATOR", true, true, "Was it booked?", Map.of());
        MockHttpServletResponse response = new MockHttpServletResponse();
        new ConsoleHandler(
                        () -> admin, properties, new EventHistory(Clock.systemUTC()), new UncertainCalls(), any -> {})
                .handleRequest(request, response);
        return response;
    }

    private void claim(StorageKey key, Duration lease) {
        records.claim(new ClaimRequest(
                key, Fingerprint.NONE, Owner.random(new SecureRandom()), lease, Duration.ofHours(1), false));
    }

    /** The page showed "1 record of this ID", and the request's own record was not mentioned. */
    @Test
    void aRecordThatCannotBeReadIsNotHiddenByAnother() throws Exception {
        claim(admin.requestKey(ID, ""), Duration.ofHours(1));
        claim(admin.savedKey(ID), Duration.ofHours(1));
        storage.before((call, key) -> {
            if (call == FaultyStorage.Call.FIND && key.equals(admin.requestKey(ID, ""))) {
                throw new CorruptRecordException("its format is 9");
            }
        });
        MockHttpServletRequest search = new MockHttpServletRequest("GET", "/idempotence");
        search.setParameter("id", ID.value());

        assertThat(send(search).getContentAsString())
                .contains("1 record of this ID")
                .contains(
                        "There is one more record, and it cannot be read",
                        admin.requestKey(ID, "").value());
    }

    /** The page said only that nothing can be shown, and the decision was recorded. */
    @Test
    void aDecisionWithoutAReplyIsReportedAsOne() throws Exception {
        StorageKey key = admin.requestKey(ID, "");
        claim(key, Duration.ofMillis(1));
        while (records.find(key).orElseThrow().state() != State.ABANDONED) {
            Thread.onSpinWait();
        }
        storage.after((call, of) -> {
            if (call == FaultyStorage.Call.RESOLVE) {
                throw new StorageUnavailableException("no reply", null);
            }
        });
        MockHttpServletRequest decision = new MockHttpServletRequest("POST", "/idempotence/resolve");
        decision.setAttribute(FormTokens.class.getName() + ".accepted", new IdempotenceId("form-1"));
        Map.of("checked", "yes", "key", key.value(), "fence", "1", "as", "not-applied")
                .forEach(decision::setParameter);

        MockHttpServletResponse response = send(decision);

        assertThat(response.getStatus()).isEqualTo(503);
        assertThat(response.getContentAsString()).contains("Your decision may have been recorded, or not");
        assertThat(records.find(key))
                .hasValueSatisfying(now -> assertThat(now.state()).isEqualTo(State.RELEASED));
    }

    /** The page said "Nothing needs a decision" about the records that it had read in five seconds. */
    @Test
    void aPartOfTheRecordsDoesNotShowThatNothingNeedsADecision() {
        assertThat(new ConsoleOverview(Map.of(), List.of(), true).heading()).isEqualTo("Nothing needs a decision");
        assertThat(new ConsoleOverview(Map.of(), List.of(), false).heading())
                .isEqualTo("Not all records could be read");
        assertThat(new ConsoleOverview(Map.of(State.UNKNOWN, 1L), List.of(), false).heading())
                .isEqualTo("At least 1 record needs a decision");
        assertThat(new ConsoleOverview(Map.of(State.UNKNOWN, 2L), List.of(), true).heading())
                .isEqualTo("2 records need a decision");
    }
}
