package io.idempotence.server;

import static io.idempotence.server.FaultyProvider.ID;
import static io.idempotence.server.FaultyProvider.KEY;
import static io.idempotence.server.FaultyProvider.SHORT_LEASE;
import static io.idempotence.server.FaultyProvider.unavailable;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.Logger;
import ch.qos.logback.classic.LoggerContext;
import ch.qos.logback.classic.turbo.TurboFilter;
import ch.qos.logback.core.spi.FilterReply;
import io.idempotence.server.storage.FaultyStorage.Call;
import io.idempotence.server.storage.IdempotenceRecord.State;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.slf4j.LoggerFactory;
import org.slf4j.Marker;

/** Executions in an application whose log throws when it is given an exception or a warning: their ends are recorded. */
class BrokenLogTest {
    @RegisterExtension
    private final FaultyProvider provider = new FaultyProvider();

    /** The thread for which every line is too much. */
    private volatile @Nullable Thread silenced;

    private final LoggerContext logs = (LoggerContext) LoggerFactory.getILoggerFactory();
    private final TurboFilter broken = new TurboFilter() {
        @Override
        public FilterReply decide(
                Marker marker, Logger logger, Level level, String format, Object[] params, Throwable thrown) {
            boolean hasException =
                    params != null && Stream.of(params).anyMatch(parameter -> parameter instanceof Throwable);
            if (logger.getName().equals(Idempotence.class.getName())
                    && (hasException || level.isGreaterOrEqual(Level.WARN) || Thread.currentThread() == silenced)) {
                throw new IllegalStateException("the log is broken");
            }
            return FilterReply.NEUTRAL;
        }
    };

    @BeforeEach
    void breakLog() {
        logs.addTurboFilter(broken);
    }

    @AfterEach
    void repairLog() {
        logs.getTurboFilterList().remove(broken);
    }

    private State state() {
        return provider.memory.find(KEY).orElseThrow().state();
    }

    @Test
    @DisplayName("T22: a completion is retried until it is recorded although no failure can be logged")
    void aCompletionWhoseFailuresCannotBeLoggedIsRetried() {
        provider.storage.before((call, which) -> {
            if (call == Call.COMPLETE && provider.storage.count(call) <= 3) {
                throw unavailable();
            }
        });
        Idempotence idempotence = provider.idempotence();
        assertThatThrownBy(() -> idempotence.execute(ID, provider::work)).hasMessage("the log is broken");
        await().until(() -> state() == State.COMPLETED);
        assertThat(provider.runs).hasValue(1);
    }

    @Test
    @DisplayName("T13: an unknown outcome that cannot be logged is recorded")
    void anUnknownOutcomeThatCannotBeLoggedIsRecorded() {
        Idempotence idempotence = provider.idempotence();
        assertThatThrownBy(() -> idempotence.execute(ID, ResultCodec.text(), execution -> {
                    execution.markUnknown();
                    return provider.work();
                }))
                .hasMessage("the log is broken");
        assertThat(state()).isEqualTo(State.UNKNOWN);
    }

    @Test
    @DisplayName("T9: a claim that cannot even be logged is given back, and nothing renews it")
    void aClaimThatCannotBeLoggedIsGivenBack() {
        Idempotence idempotence = provider.idempotence(SHORT_LEASE);
        silenced = Thread.currentThread();
        assertThatThrownBy(() -> idempotence.execute(ID, provider::work)).hasMessage("the log is broken");
        assertThat(provider.runs).hasValue(0);
        assertThat(state()).isEqualTo(State.RELEASED);
    }

    /** It counted as a failure of the storage, and was written again. */
    @Test
    @DisplayName("T12: a release that is recorded but cannot be logged is not repeated")
    void aReleaseThatCannotBeLoggedIsNotRepeated() {
        Idempotence idempotence = provider.idempotence();
        assertThatThrownBy(() -> idempotence.execute(ID, () -> {
                    silenced = Thread.currentThread();
                    throw new IllegalStateException("out of stock");
                }))
                .hasMessage("the log is broken");
        idempotence.close();
        assertThat(state()).isEqualTo(State.RELEASED);
        assertThat(provider.storage.count(Call.RELEASE)).isEqualTo(1);
    }

    @Test
    @DisplayName("T12: a release that is recorded in the background, but cannot be logged there, is not repeated")
    void aReleaseInTheBackgroundThatCannotBeLoggedIsNotRepeated() {
        provider.storage.before((call, which) -> {
            if (call == Call.RELEASE && provider.storage.count(call) == 1) {
                throw unavailable();
            } else if (call == Call.RELEASE) {
                silenced = Thread.currentThread();
            }
        });
        Idempotence idempotence = provider.idempotence();
        assertThatThrownBy(() -> idempotence.execute(ID, () -> {
                    throw new IllegalStateException("out of stock");
                }))
                .hasMessage("the log is broken");
        await().until(() -> state() == State.RELEASED);
        // It would make what is still to be written now.
        idempotence.close();
        assertThat(provider.storage.count(Call.RELEASE)).isEqualTo(2);
    }

    @Test
    @DisplayName("a background task whose failure cannot be logged does not keep those behind it from running")
    void aTaskWhoseFailureCannotBeLoggedFailsNoOther() {
        assertThatCode(() -> Scheduler.runLogged(() -> {
                    throw new IllegalStateException("as the test asks");
                }))
                .doesNotThrowAnyException();
    }
}
