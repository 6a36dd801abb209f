package io.idempotence.it.architecture;

import static org.assertj.core.api.Assertions.assertThat;

import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.domain.JavaModifier;
import com.tngtech.archunit.junit.ArchTest;
import java.util.Optional;
import java.util.function.Predicate;
import java.util.stream.Stream;

/**
 * The list of all types of the product that a user can name, so of none in a package named {@code internal}. A new line extends the public
 * API. It runs as a part of {@link ArchitectureTest}, so with {@code -Dtest=ArchitectureTest}.
 */
class PublicTypes {
    private static final String BASE = "io.idempotence.";
    private static final String CLIENT = BASE + "client.";
    private static final String SERVER = BASE + "server.";
    private static final String SPRING = BASE + "spring.";

    @ArchTest
    static void ofCommon(JavaClasses product) {
        assertPublicTypes(product, BASE, PublicTypes::isOfCommon, """
                IdempotenceException
                IdempotenceId
                IdempotenceIdGenerator
                IdempotenceIdGenerator.BusinessFields
                FailureRule
                Idempotent
                InboundRequest
                OnAbandoned
                http.IdempotenceHeaders
                http.IdempotencyKeyHeader
                http.IdempotencyKeyHeader.Style
                http.InvalidIdempotencyKeyException
                http.Refusal
                """);
    }

    @ArchTest
    static void ofTheClient(JavaClasses product) {
        assertPublicTypes(product, CLIENT, name -> name.startsWith(CLIENT), """
                IdempotenceClientAttemptEvent
                IdempotenceClientAttemptEvent.Outcome
                IdempotenceClientConfig
                IdempotenceClientConfigBuilder
                IdempotenceClientConfigException
                IdempotenceClientEvent
                IdempotenceClientEvent.Result
                IdempotenceClientListener
                IdempotenceScope
                IdempotenceScope.Work
                OutcomeUnknown
                RequestRefused
                RetryBudget
                feign.FeignOutcomeUnknownException
                feign.FeignRequestRefusedException
                feign.IdempotentFeign
                feign.IdempotentFeign.Installed
                metrics.IdempotenceClientMetrics
                okhttp.IdempotentOkHttp
                okhttp.OkHttpOutcomeUnknownException
                okhttp.OkHttpRequestRefusedException
                """);
    }

    @ArchTest
    static void ofTheServer(JavaClasses product) {
        assertPublicTypes(product, SERVER, name -> name.startsWith(SERVER), """
                Decision
                Decision.Refuse
                Decision.Replay
                Decision.Substitute
                ClaimedExecution
                Engine
                ExecutionRefusedException
                Idempotence
                Idempotence.Builder
                IdempotenceAdmin
                IdempotenceAdmin.Deleted
                IdempotenceAdmin.Resolved
                IdempotenceAdmin.Stats
                IdempotenceEvent
                IdempotenceListener
                IdempotenceListener.AttemptEnd
                IdempotenceListener.AttemptListener
                IdempotenceListener.ReleaseReason
                IdempotenceListener.ReleaseReason.Trigger
                IdempotenceListener.StorageState
                IdempotencePolicy
                IdempotencePolicy.Applied
                IdempotencePolicy.Builder
                IdempotencePolicy.Completion
                IdempotencePolicy.Recovery
                IdempotencePolicy.Verdict
                IdempotentCall
                IdempotentExecution
                IdempotentWork
                ResultCodec
                jdbc.ExecutionOvertakenException
                jdbc.JdbcIdempotenceStorage
                jdbc.JdbcIdempotenceStorage.Builder
                metrics.IdempotenceMetrics
                redis.RedisCommands
                redis.RedisCommands.Page
                redis.RedisIdempotenceStorage
                redis.RedisIdempotenceStorage.Builder
                servlet.BodyComparison
                servlet.IdempotenceFilter
                servlet.IdempotenceFilterBuilder
                servlet.RefusalWriter
                servlet.RequestScope
                servlet.RequestSettings
                storage.Claim
                storage.ClaimResult
                storage.ClaimResult.Abandoned
                storage.ClaimResult.Claimed
                storage.ClaimResult.Completed
                storage.ClaimResult.InProgress
                storage.ClaimResult.KeyReused
                storage.ClaimResult.Unknown
                storage.CorruptRecordException
                storage.Fingerprint
                storage.IdempotenceRecord
                storage.IdempotenceRecord.Resolution
                storage.IdempotenceRecord.State
                storage.IdempotenceStorage
                storage.IdempotenceStorage.ClaimRequest
                storage.IdempotenceStorage.CompletionRequest
                storage.Owner
                storage.StorageKey
                storage.StorageUnavailableException
                storage.StorageUnavailableException.Certainty
                storage.StoredRecord
                storage.StoredRecord.Phase
                storage.StoredRecord.Step
                storage.WriteResult
                storage.WriteResult.Done
                storage.WriteResult.Fenced
                storage.WriteResult.Lost
                storage.WriteResult.StoredAfterLoss
                """);
    }

    /** Besides what users name: configurations and their properties, which Spring needs to be public. */
    @ArchTest
    static void ofTheStarter(JavaClasses product) {
        assertPublicTypes(product, SPRING, name -> name.startsWith(SPRING), """
                actuate.IdempotenceActuatorAutoConfiguration
                actuate.IdempotenceConsoleAutoConfiguration
                actuate.IdempotenceObservationAutoConfiguration
                actuate.LoggedIdAccessor
                client.CircuitBreakerCapability
                client.FeignFallback
                client.IdempotenceClientAutoConfiguration
                client.IdempotentRestClient
                client.RestOutcomeUnknownException
                client.RestRequestRefusedException
                form.FormProblem
                form.FormProblemPage
                form.FormTokens
                form.IdempotenceFormAutoConfiguration
                method.IdempotenceMethodAutoConfiguration
                method.IdempotenceMethodOffAutoConfiguration
                method.IdempotentOperation
                method.IdempotentOperation.Kind
                method.IdempotentOperation.Origin
                method.IdempotentOperation.Setting
                method.IdempotentOperations
                method.NoIdempotenceIdException
                server.IdempotenceFilterCustomizer
                server.IdempotenceFilterRegistrationBean
                server.IdempotenceServerAutoConfiguration
                server.IdempotenceServerHealthAutoConfiguration
                server.IdempotenceServerProperties
                server.IdempotenceServerProperties.Comparison
                server.IdempotenceServerProperties.Header
                server.IdempotenceServerProperties.Jdbc
                server.IdempotenceServerProperties.Memory
                server.IdempotenceServerProperties.Policy
                server.IdempotenceServerProperties.RedisSettings
                server.IdempotenceServerProperties.Scope
                server.IdempotenceServerProperties.Storage
                """);
    }

    private static boolean isOfCommon(String name) {
        return Stream.of(CLIENT, SERVER, SPRING).noneMatch(name::startsWith);
    }

    private static void assertPublicTypes(
            JavaClasses product, String prefix, Predicate<String> ofTheModule, String types) {
        assertThat(product.stream()
                        .filter(type -> ofTheModule.test(type.getName()))
                        .filter(type -> !type.getPackageName().contains(".internal"))
                        .filter(PublicTypes::canBeNamedByUsers)
                        .map(type -> type.getName().substring(prefix.length()).replace('$', '.')))
                .containsExactlyInAnyOrder(types.split("\n"));
    }

    private static boolean canBeNamedByUsers(JavaClass type) {
        boolean open = type.getModifiers().contains(JavaModifier.PUBLIC)
                || type.getModifiers().contains(JavaModifier.PROTECTED);
        Optional<JavaClass> outer = type.getEnclosingClass();
        return open && !type.isAnonymousClass() && (outer.isEmpty() || canBeNamedByUsers(outer.get()));
    }
}
